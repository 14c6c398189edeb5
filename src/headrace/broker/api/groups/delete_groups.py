"""DeleteGroups v0-2: delete empty groups with their committed offsets."""

from collections.abc import Coroutine

from headrace.broker.api.registry import Call, api
from headrace.broker.shares.group_states import forget_group
from headrace.errors import KafkaError
from headrace.groups.group import GroupType
from headrace.groups.offsets import delete_group
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each

_RIGHTS = (for_each(Operation.DELETE, ResourceType.GROUP),)


@api(ApiKey.DELETE_GROUPS, versions=range(3), rights=_RIGHTS)
async def delete_groups(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        try:
            await _delete(group_id, call)
            results.append(DeletableGroupResult(group_id))
        except KafkaError as error:
            results.append(DeletableGroupResult(group_id, error.code))
    return DeleteGroupsResponse(results=results)


async def _delete(group_id: str, call: Call) -> None:
    call.access.check(Operation.DELETE, ResourceType.GROUP, group_id)
    shard = call.broker.groups.shard_for(group_id)
    group = shard.state.groups.get(group_id)
    if group is not None and group.type is GroupType.SHARE:
        await forget_group(call.broker.share_persister, shard, group_id, call.broker.image)
    done = shard.apply(delete_group(shard.state, group_id))
    if isinstance(done, Coroutine):
        await done
