"""DeleteGroups v0-2: forget groups that have no members, and all that they have committed."""

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


def _refuse(request: DeleteGroupsRequest, error: KafkaError, version: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(name, error.code) for name in request.groups_names]
    )


@api(ApiKey.DELETE_GROUPS, versions=range(3), refuse=_refuse)
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
    shard = call.broker.groups.shard_for(group_id)
    group = shard.state.groups.get(group_id)
    if group is not None and group.type is GroupType.SHARE:
        await forget_group(call.broker, shard, group_id)
    done = shard.carry_out(delete_group(shard.state, group_id))
    if isinstance(done, Coroutine):
        await done
