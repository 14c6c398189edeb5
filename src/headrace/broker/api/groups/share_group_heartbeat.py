"""ShareGroupHeartbeat v1: a member of a share group is there, and gets its share (KIP-932).

A member that brings new topics waits until the share coordinator has begun their states, and is
answered with its share; Kafka answers at once, and has it come again for it.
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.broker.api.registry import Call, api
from headrace.broker.shares.group_states import begin_states
from headrace.groups.consumer_context import Client
from headrace.groups.share import Answer, check_request, serve_heartbeat
from headrace.groups.share_states import not_initialized
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from headrace.runtime.eager import finish_now
from headrace.shares.state import UNINITIALIZED

if TYPE_CHECKING:
    from headrace.broker.coordinators import Shard
    from headrace.groups.shard import GroupShard


@api(ApiKey.SHARE_GROUP_HEARTBEAT, versions=range(1, 2))
def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, call: Call
) -> ShareGroupHeartbeatResponse | Coroutine[Any, Any, ShareGroupHeartbeatResponse]:
    check_share_groups(call.broker.image.features)
    check_request(request)
    shard = call.broker.groups.shard_for(request.group_id)
    answer = shard.carry_out(_decide(shard, request, call))
    if isinstance(answer, Answer) and not answer.missing:
        return answer.response
    return finish_now(_finish(shard, request, call, answer))


def _decide(shard: "Shard[GroupShard]", request: ShareGroupHeartbeatRequest, call: Call) -> Any:
    client = Client(call.client_id or "", f"/{call.peer.host}")
    return serve_heartbeat(shard.state, request, client, call.broker.clock.now_ms())


async def _finish(
    shard: "Shard[GroupShard]",
    request: ShareGroupHeartbeatRequest,
    call: Call,
    answer: Answer | Coroutine[Any, Any, Answer] | None,
) -> ShareGroupHeartbeatResponse:
    told = answer if isinstance(answer, Answer) else await answer if answer is not None else None
    assert told is not None
    if not told.missing:
        return told.response
    nowhere = {
        topic_id: dict.fromkeys(partitions, UNINITIALIZED)
        for topic_id, partitions in told.missing.items()
    }
    refused = await begin_states(call.broker, shard, request.group_id, told.state_epoch, nowhere)
    again = msgspec.structs.replace(request, member_epoch=told.response.member_epoch)
    share: Answer = await shard.carried_out(_decide(shard, again, call))
    failed = {topic_id for topic_id, _ in refused}
    await shard.carried_out(not_initialized(shard.state, request.group_id, failed))
    return share.response
