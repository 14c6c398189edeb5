"""Heartbeat v0-4: a member of a classic group is alive, and hears whether to join again.

Members send one every three seconds for ever, so the few answers there are have their bytes
made once.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import CoordinatorLoadInProgress, InvalidGroupId, KafkaError
from headrace.groups.classic import heartbeat as beat
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import encode
from headrace.protocol.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse

_answers: dict[tuple[int, int], bytes] = {}


@api(ApiKey.HEARTBEAT, versions=range(5))
def heartbeat(request: HeartbeatRequest, call: Call) -> HeartbeatResponse | bytes:
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    try:
        code = _beat(request, call)
    except CoordinatorLoadInProgress:
        code = 0  # Nobody can say yet; as in Kafka the member is left in peace.
    except KafkaError as error:
        code = error.code
    answer = _answers.get((call.version, code))
    if answer is None:
        answer = bytes(encode(HeartbeatResponse(error_code=code), call.version))
        _answers[call.version, code] = answer
    return answer


def _beat(request: HeartbeatRequest, call: Call) -> int:
    shard = call.broker.groups.shard_for(request.group_id)
    effects = beat(
        shard.state,
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
    )
    code = shard.carry_out(effects)
    assert isinstance(code, int)  # A heartbeat writes nothing that could have to wait.
    return code
