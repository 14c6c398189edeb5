"""ShareGroupHeartbeat v1: keep a member of a share group alive and assign it (KIP-932).

If a member brings new topics, the response with its assignment waits until the share coordinator
has created their states. Kafka responds immediately, and assigns them after a later heartbeat.
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.broker.api.groups.subscribing import check_subscription
from headrace.broker.api.registry import Call, api
from headrace.broker.shares.group_states import begin_states
from headrace.coordination.effects import Effects
from headrace.groups.epochs.heartbeat import Answer, Client
from headrace.groups.share.protocol import ShareAnswer, check_request, serve_heartbeat
from headrace.groups.share.states import not_initialized
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from headrace.runtime.eager import finish_now
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request
from headrace.shares.state import UNINITIALIZED

if TYPE_CHECKING:
    from headrace.broker.coordinators import Shard
    from headrace.groups.shard import GroupShard

_RIGHTS = (
    for_request(Operation.READ, ResourceType.GROUP),
    for_request(Operation.DESCRIBE, ResourceType.TOPIC, "subscribed topics"),
)


@api(ApiKey.SHARE_GROUP_HEARTBEAT, versions=range(1, 2), rights=_RIGHTS)
def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, call: Call
) -> ShareGroupHeartbeatResponse | Coroutine[Any, Any, ShareGroupHeartbeatResponse]:
    check_share_groups(call.broker.image.features)
    if call.broker.authorizer is not None:
        check_subscription(request.group_id, request.subscribed_topic_names or (), call)
    check_request(request)
    shard = call.broker.groups.shard_for(request.group_id)
    answer = shard.apply(_decide(shard, request, call))
    if isinstance(answer, Answer) and not answer.needs:
        return answer.response
    return finish_now(_finish(shard, request, call, answer))


def _decide(
    shard: "Shard[GroupShard]", request: ShareGroupHeartbeatRequest, call: Call
) -> Effects[ShareAnswer]:
    client = Client(call.client_id or "", f"/{call.peer.host}")
    return serve_heartbeat(shard.state, request, client, call.broker.clock.now_ms())


async def _finish(
    shard: "Shard[GroupShard]",
    request: ShareGroupHeartbeatRequest,
    call: Call,
    answer: ShareAnswer | Coroutine[Any, Any, ShareAnswer] | None,
) -> ShareGroupHeartbeatResponse:
    assert answer is not None  # A heartbeat always has a reply.
    first = await answer if isinstance(answer, Coroutine) else answer
    if not first.needs:
        return first.response
    nowhere = {
        topic_id: dict.fromkeys(partitions, UNINITIALIZED)
        for topic_id, partitions in first.needs.partitions.items()
    }
    refused = await begin_states(
        call.broker.share_persister, shard, request.group_id, first.needs.state_epoch, nowhere
    )
    again = msgspec.structs.replace(request, member_epoch=first.response.member_epoch)
    second = await shard.applied(_decide(shard, again, call))
    failed = {topic_id for topic_id, _ in refused}
    await shard.applied(not_initialized(shard.state, request.group_id, failed))
    return second.response
