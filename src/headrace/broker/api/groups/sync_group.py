"""SyncGroup v0-5: fetch a member's share of the assignment; the leader brings it.

v3 knows static members (KIP-345); v5 names the protocol, so that a mix-up is noticed (KIP-559).
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.groups.waiting import outcome
from headrace.broker.api.registry import Call, api
from headrace.errors import InconsistentGroupProtocol, InvalidGroupId
from headrace.groups.classic import sync
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL_FROM = 5


@api(ApiKey.SYNC_GROUP, versions=range(6))
def sync_group(
    request: SyncGroupRequest, call: Call
) -> SyncGroupResponse | Coroutine[Any, Any, SyncGroupResponse]:
    broker = call.broker
    if call.version >= _NAMES_PROTOCOL_FROM and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        raise InconsistentGroupProtocol("the protocol's type and name must be given")
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    shard = broker.groups.shard_for(request.group_id)
    ticket = broker.loop.create_future()
    effects = sync(shard.state, request, ticket, broker.clock.now_ms())
    return outcome(shard.carry_out(effects), ticket, _as_it_is)


def _as_it_is(response: SyncGroupResponse) -> SyncGroupResponse:
    return response
