"""ConsumerGroupHeartbeat v0-1: keep a member of a consumer group alive and assign it (KIP-848).

v1 adds subscriptions by regular expression, and member ids that clients choose (KIP-1082).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.groups.consumer.protocol import check_request, serve_heartbeat
from headrace.groups.epochs.heartbeat import Client
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@api(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(2))
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse | Coroutine[Any, Any, ConsumerGroupHeartbeatResponse]:
    broker = call.broker
    check_request(request, call.version, broker.settings.group_consumer_assignors)
    shard = broker.groups.shard_for(request.group_id)
    client = Client(call.client_id or "", f"/{call.peer.host}")
    effects = serve_heartbeat(shard.state, request, client, broker.clock.now_ms())
    reply = shard.apply(effects)
    assert reply is not None
    return reply
