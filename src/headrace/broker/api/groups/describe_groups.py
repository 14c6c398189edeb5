"""DescribeGroups v0-6: the state and the members of classic groups.

v3 adds allowed operations, v4 instance ids; v6 reports a missing group by an error instead of the
state Dead (KIP-1043).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import on_group
from headrace.broker.coordinators import Shard, when_committed
from headrace.errors import GroupIdNotFound, KafkaError
from headrace.groups.classic.group import ClassicGroup, Member, State
from headrace.groups.shard import GroupShard
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each

_RIGHTS = (for_each(Operation.DESCRIBE, ResourceType.GROUP),)
_MESSAGES_FROM = 6


def _refuse(
    request: DescribeGroupsRequest, error: KafkaError, version: int
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[_failed(group_id, error, version) for group_id in request.groups]
    )


@api(ApiKey.DESCRIBE_GROUPS, versions=range(7), rights=_RIGHTS, refuse=_refuse)
def describe_groups(
    request: DescribeGroupsRequest, call: Call
) -> DescribeGroupsResponse | Coroutine[Any, Any, DescribeGroupsResponse]:
    access = call.access
    described = []
    shards: list[Shard[GroupShard]] = []
    for group_id in request.groups:
        try:
            access.check(Operation.DESCRIBE, ResourceType.GROUP, group_id)
            shard = call.broker.groups.shard_for(group_id)
            shards.append(shard)
            group = _describe(group_id, shard.state, call.version)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = on_group(access, group_id)
        except KafkaError as error:
            group = _failed(group_id, error, call.version)
        described.append(group)
    return when_committed(shards, DescribeGroupsResponse(groups=described))


def _describe(group_id: str, state: GroupShard, version: int) -> DescribedGroup:
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return _missing(group_id, version)
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[_member(group, one, is_stable=is_stable) for one in group.members.values()],
    )


def _failed(group_id: str, error: KafkaError, version: int) -> DescribedGroup:
    message = str(error) if version >= _MESSAGES_FROM else None
    return DescribedGroup(error.code, message, group_id)


def _missing(group_id: str, version: int) -> DescribedGroup:
    dead = DescribedGroup(group_id=group_id, group_state=State.DEAD)
    if version >= _MESSAGES_FROM:
        dead.error_code = GroupIdNotFound.code
        dead.error_message = f"Group {group_id} not found."
    return dead


def _member(group: ClassicGroup, member: Member, *, is_stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata_for(group.protocol) if is_stable else b"",
        member_assignment=member.assignment if is_stable else b"",
    )
