"""SyncGroup v0-5: return the assignment of a member; the leader provides it for the group.

v3 adds static members (KIP-345), v5 the protocol, so that a mismatch is rejected (KIP-559).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.groups.waiting import outcome
from headrace.broker.api.registry import Call, api
from headrace.errors import InconsistentGroupProtocol, InvalidGroupId
from headrace.groups.classic_requests import sync
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.READ, ResourceType.GROUP),)
_NAMES_PROTOCOL_FROM = 5


@api(ApiKey.SYNC_GROUP, versions=range(6), rights=_RIGHTS)
def sync_group(
    request: SyncGroupRequest, call: Call
) -> SyncGroupResponse | Coroutine[Any, Any, SyncGroupResponse]:
    broker = call.broker
    if call.version >= _NAMES_PROTOCOL_FROM and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        raise InconsistentGroupProtocol("the protocol's type and name must be given")
    call.access.check(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    shard = broker.groups.shard_for(request.group_id)
    ticket = broker.loop.create_future()
    effects = sync(shard.state, request, ticket, broker.clock.now_ms())
    return outcome(shard.apply(effects), ticket, _as_it_is)


def _as_it_is(response: SyncGroupResponse) -> SyncGroupResponse:
    return response
