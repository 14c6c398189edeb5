"""ConsumerGroupHeartbeat v0-1: a member of a consumer group is there, and gets its share (KIP-848).

v1 brings subscriptions by regular expression, and members that choose their own id (KIP-1082).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.groups.consumer import check_request, serve_heartbeat
from headrace.groups.consumer_context import Client
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
    reply = shard.carry_out(effects)
    assert reply is not None
    return reply
