"""FindCoordinator v0-6: the coordinator of a group, a transactional id or a share partition.

v4 accepts several keys (KIP-699); v6 adds share partitions. The first request creates the internal
topic and waits for it; Kafka makes the client retry.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.broker.coordinators import Coordinator as Coordinates
from headrace.broker.topics.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from headrace.broker.topics.topology import NO_NODE, endpoint_of
from headrace.errors import CoordinatorNotAvailable, InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.protocol.uuids import from_text
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request

_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.GROUP, "groups"),
    for_each(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional ids"),
    for_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "share partitions"),
)

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_TOPICS = {
    _GROUP: CONSUMER_OFFSETS,
    _TRANSACTION: TRANSACTION_STATE,
    _SHARE: SHARE_GROUP_STATE,
}
_BATCHED_FROM, _SHARE_FROM = 4, 6


def _refuse(
    request: FindCoordinatorRequest, error: KafkaError, version: int
) -> FindCoordinatorResponse:
    if version >= _BATCHED_FROM:
        failed = [_failed(key, error) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=failed)
    return _as_single(_failed(request.key, error))


@api(ApiKey.FIND_COORDINATOR, versions=range(7), rights=_RIGHTS, refuse=_refuse)
def find_coordinator(
    request: FindCoordinatorRequest, call: Call
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    if request.key_type not in _TOPICS:
        raise InvalidRequest(f"there is no coordinator type {request.key_type}")
    keys = request.coordinator_keys if call.version >= _BATCHED_FROM else [request.key]
    if keys and not any(_is_sound(request.key_type, key, call) for key in keys):
        _check(request.key_type, keys[0], call)
    coordinates = _coordinates(request.key_type, call)
    if coordinates.exists:
        return _answer(request, coordinates, call)
    return _create_and_answer(request, coordinates, call)


async def _create_and_answer(
    request: FindCoordinatorRequest, coordinates: Coordinates[Any], call: Call
) -> FindCoordinatorResponse:
    await coordinates.ensure_topic()
    return _answer(request, coordinates, call)


def _coordinates(key_type: int, call: Call) -> Coordinates[Any]:
    topic = _TOPICS[key_type]
    for coordinates in call.broker.coordinators:
        if coordinates.topic == topic:
            return coordinates
    raise CoordinatorNotAvailable(f"this broker does not host {topic}")


def _answer(
    request: FindCoordinatorRequest, coordinates: Coordinates[Any], call: Call
) -> FindCoordinatorResponse:
    if call.version < _BATCHED_FROM:
        return _as_single(_find(request.key_type, request.key, coordinates, call))
    return FindCoordinatorResponse(
        coordinators=[
            _find(request.key_type, key, coordinates, call) for key in request.coordinator_keys
        ]
    )


def _find(key_type: int, key: str, coordinates: Coordinates[Any], call: Call) -> Coordinator:
    try:
        _check(key_type, key, call)
        broker = call.broker.image.brokers.get(coordinates.leader_of(key))
        endpoint = None if broker is None else endpoint_of(broker, call.listener)
        if broker is None or endpoint is None:
            raise CoordinatorNotAvailable(f"the coordinator of {key} cannot be reached")
    except KafkaError as error:
        return _failed(key, error)
    return Coordinator(key=key, node_id=broker.id, host=endpoint.host, port=endpoint.port)


def _check(key_type: int, key: str, call: Call) -> None:
    """Raise if the key is invalid, or the caller may not look for its coordinator."""
    if key_type == _GROUP:
        call.access.check(Operation.DESCRIBE, ResourceType.GROUP, key)
    elif key_type == _TRANSACTION:
        call.access.check(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
    else:
        named = "a share partition is named group:topic-id:partition, from v6 on"
        if call.version < _SHARE_FROM:
            raise InvalidRequest(named)
        call.access.check_on_cluster(Operation.CLUSTER_ACTION)
        if not _is_share_partition(key):
            raise InvalidRequest(named)


def _is_sound(key_type: int, key: str, call: Call) -> bool:
    try:
        _check(key_type, key, call)
    except KafkaError:
        return False
    return True


def _is_share_partition(key: str) -> bool:
    """True for a key `group:topic-id:partition`; the group itself may contain colons."""
    group, _, rest = key.rpartition(":")
    group, _, topic_id = group.rpartition(":")
    try:
        from_text(topic_id)
    except ValueError:
        return False
    return bool(group) and rest.isdecimal()


def _failed(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        port=NO_NODE,
        error_code=error.code,
        error_message=str(error),
    )


def _as_single(found: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message if found.error_code else None,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )
