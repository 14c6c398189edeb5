"""LeaveGroup v0-5: members leave a classic group, or an administrator removes them.

v3 accepts several members, also by instance id (KIP-345); v5 adds a reason.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import InvalidGroupId, KafkaError, UnknownMemberId
from headrace.groups.classic_requests import leave
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.READ, ResourceType.GROUP),)
_SEVERAL_FROM = 3


def _refuse(request: LeaveGroupRequest, error: KafkaError, version: int) -> LeaveGroupResponse:
    if not isinstance(error, UnknownMemberId):
        return LeaveGroupResponse(error_code=error.code)
    responses = [
        MemberResponse(one.member_id, one.group_instance_id, error.code)
        for one in _identities(request, version)
    ]
    return _shaped(responses, version)


@api(ApiKey.LEAVE_GROUP, versions=range(6), rights=_RIGHTS, refuse=_refuse)
def leave_group(
    request: LeaveGroupRequest, call: Call
) -> LeaveGroupResponse | Coroutine[Any, Any, LeaveGroupResponse]:
    call.access.check(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    broker, version = call.broker, call.version
    shard = broker.groups.shard_for(request.group_id)
    effects = leave(
        shard.state, request.group_id, _identities(request, version), broker.clock.now_ms()
    )
    responses = shard.apply(effects)
    if isinstance(responses, Coroutine):
        return _later(responses, version)
    assert responses is not None
    return _shaped(responses, version)


async def _later(
    responses: Coroutine[Any, Any, list[MemberResponse]], version: int
) -> LeaveGroupResponse:
    return _shaped(await responses, version)


def _identities(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    if version >= _SEVERAL_FROM:
        return request.members
    return [MemberIdentity(member_id=request.member_id)]


def _shaped(responses: list[MemberResponse], version: int) -> LeaveGroupResponse:
    """Before v3 there is one member, and its error is the error of the response."""
    if version >= _SEVERAL_FROM:
        return LeaveGroupResponse(members=responses)
    return LeaveGroupResponse(error_code=responses[0].error_code if responses else 0)
