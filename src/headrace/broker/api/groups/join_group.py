"""JoinGroup v0-9: become a member of a classic group, or take part in its next generation.

v4 assigns a new member its id before it joins (KIP-394), v5 adds static members (KIP-345), v7 the
protocol type, v8 a reason for the log, v9 lets a returning leader skip its assignment.
"""

from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

from headrace.broker.api.groups.waiting import outcome
from headrace.broker.api.registry import Call, api
from headrace.errors import InvalidGroupId, InvalidSessionTimeout, KafkaError
from headrace.groups.classic.protocol import Joining, refused_join
from headrace.groups.classic_requests import join
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request
from headrace.settings.broker import BrokerSettings

_RIGHTS = (for_request(Operation.READ, ResourceType.GROUP),)
_KNOWN_ID_FROM, _NULLABLE_PROTOCOL_FROM, _SKIP_FROM = 4, 7, 9


def _refuse(request: JoinGroupRequest, error: KafkaError, version: int) -> JoinGroupResponse:
    return _fit(refused_join(request.member_id, error), version)


@api(ApiKey.JOIN_GROUP, versions=range(10), rights=_RIGHTS, refuse=_refuse)
def join_group(
    request: JoinGroupRequest, call: Call
) -> JoinGroupResponse | Coroutine[Any, Any, JoinGroupResponse]:
    broker = call.broker
    call.access.check(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    _check_session_timeout(request.session_timeout_ms, broker.settings)
    shard = broker.groups.shard_for(request.group_id)
    ticket = broker.loop.create_future()
    effects = join(shard.state, _joining(request, call), ticket, broker.clock.now_ms())
    version = call.version
    return outcome(shard.apply(effects), ticket, lambda response: _fit(response, version))


def _check_session_timeout(timeout_ms: int, settings: BrokerSettings) -> None:
    shortest = settings.group_min_session_timeout_ms
    longest = settings.group_max_session_timeout_ms
    if not shortest <= timeout_ms <= longest:
        raise InvalidSessionTimeout(
            f"a session timeout of {timeout_ms} ms is not between {shortest} ms "
            f"(group.min.session.timeout.ms) and {longest} ms (group.max.session.timeout.ms)"
        )


def _joining(request: JoinGroupRequest, call: Call) -> Joining:
    rebalance_ms = request.rebalance_timeout_ms
    if call.version == 0:
        rebalance_ms = request.session_timeout_ms  # Version 0 has one timeout for both.
    return Joining(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=f"/{call.peer.host}",
        protocol_type=request.protocol_type,
        protocols=tuple((one.name, one.metadata) for one in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_ms,
        new_id=str(uuid4()),
        needs_known_id=call.version >= _KNOWN_ID_FROM,
        can_skip_assignment=call.version >= _SKIP_FROM,
        may_describe=call.may_describe,
    )


def _fit(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if version < _NULLABLE_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response
