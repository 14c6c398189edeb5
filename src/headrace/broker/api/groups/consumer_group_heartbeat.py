"""ConsumerGroupHeartbeat v0-1: keep a member of a consumer group alive and assign it (KIP-848).

v1 adds subscriptions by regular expression, and member ids that clients choose (KIP-1082).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.groups.subscribing import check_subscription
from headrace.broker.api.registry import Call, api
from headrace.groups.consumer.protocol import check_request, serve_heartbeat
from headrace.groups.epochs.heartbeat import Client
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request, to_list

_RIGHTS = (
    for_request(Operation.READ, ResourceType.GROUP),
    for_request(Operation.DESCRIBE, ResourceType.TOPIC, "topics by name"),
    to_list(Operation.DESCRIBE, ResourceType.TOPIC, "topics by pattern"),
)


@api(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(2), rights=_RIGHTS)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse | Coroutine[Any, Any, ConsumerGroupHeartbeatResponse]:
    broker = call.broker
    if broker.authorizer is not None:
        check_subscription(request.group_id, request.subscribed_topic_names or (), call)
    check_request(request, call.version, broker.settings.group_consumer_assignors)
    shard = broker.groups.shard_for(request.group_id)
    client = Client(call.client_id or "", f"/{call.peer.host}", call.may_describe)
    effects = serve_heartbeat(shard.state, request, client, broker.clock.now_ms())
    reply = shard.apply(effects)
    assert reply is not None
    return reply
