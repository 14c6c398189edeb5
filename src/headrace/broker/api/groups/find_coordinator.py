"""FindCoordinator v0-6: which broker coordinates a group, a transactional id or a share partition.

v4 asks for several keys at once (KIP-699); v6 adds share partitions. This broker coordinates
nothing yet, so a well-formed key is answered with COORDINATOR_NOT_AVAILABLE, which clients take
for a passing state: consumers that assign partitions themselves go on without a group.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.topology import NO_NODE
from headrace.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.protocol.uuids import from_text

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2


def _refuse(
    request: FindCoordinatorRequest, error: KafkaError, version: int
) -> FindCoordinatorResponse:
    if version >= 4:
        nobody = [_nobody(key, error) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=nobody)
    return FindCoordinatorResponse(
        error_code=error.code, error_message=str(error), node_id=NO_NODE, port=NO_NODE
    )


@api(ApiKey.FIND_COORDINATOR, versions=range(7), refuse=_refuse)
def find_coordinator(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    if call.version < 4:
        raise _why_nobody(request.key_type, request.key, call.version)
    return FindCoordinatorResponse(
        coordinators=[
            _nobody(key, _why_nobody(request.key_type, key, call.version))
            for key in request.coordinator_keys
        ]
    )


def _why_nobody(key_type: int, key: str, version: int) -> KafkaError:
    if key_type not in (_GROUP, _TRANSACTION, _SHARE):
        return InvalidRequest(f"there is no coordinator type {key_type}")
    if key_type == _SHARE and (version < 6 or not _is_share_partition(key)):
        return InvalidRequest("a share partition is named group:topic-id:partition, from v6 on")
    return CoordinatorNotAvailable("this broker coordinates no groups or transactions yet")


def _is_share_partition(key: str) -> bool:
    """Whether a key is `group:topic-id:partition`; the group itself may contain colons."""
    group, _, rest = key.rpartition(":")
    group, _, topic_id = group.rpartition(":")
    try:
        from_text(topic_id)
    except ValueError:
        return False
    return bool(group) and rest.isdecimal()


def _nobody(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        port=NO_NODE,
        error_code=error.code,
        error_message=str(error),
    )
