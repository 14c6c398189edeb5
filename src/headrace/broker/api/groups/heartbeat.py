"""Heartbeat v0-4: keep a member of a classic group alive, or make it join again.

Each member sends one every three seconds, so the few different responses are encoded only once.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import CoordinatorLoadInProgress, InvalidGroupId, KafkaError
from headrace.groups.classic_requests import heartbeat as beat
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import encode
from headrace.protocol.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.READ, ResourceType.GROUP),)

_answers: dict[tuple[int, int], bytes] = {}


@api(ApiKey.HEARTBEAT, versions=range(5), rights=_RIGHTS)
def heartbeat(
    request: HeartbeatRequest, call: Call
) -> HeartbeatResponse | bytes | Coroutine[Any, Any, HeartbeatResponse | bytes]:
    authorizer = call.broker.authorizer
    if authorizer is not None and (version := authorizer.version) != call.allowed_at:
        call.access.check(Operation.READ, ResourceType.GROUP, request.group_id)
        call.allowed_at = version
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    try:
        code = _beat(request, call)
    except CoordinatorLoadInProgress:
        code = 0  # As in Kafka, the member is not disturbed while its group is loaded.
    except KafkaError as error:
        code = error.code
    return _answer(call.version, code) if isinstance(code, int) else _later(call.version, code)


def _answer(version: int, code: int) -> bytes:
    answer = _answers.get((version, code))
    if answer is None:
        answer = bytes(encode(HeartbeatResponse(error_code=code), version))
        _answers[version, code] = answer
    return answer


async def _later(version: int, code: Coroutine[Any, Any, int]) -> HeartbeatResponse | bytes:
    return _answer(version, await code)


def _beat(request: HeartbeatRequest, call: Call) -> int | Coroutine[Any, Any, int]:
    shard = call.broker.groups.shard_for(request.group_id)
    effects = beat(
        shard.state,
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
    )
    code = shard.apply(effects)
    assert code is not None  # A heartbeat always has a reply.
    return code
