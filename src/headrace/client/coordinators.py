"""Lookup of the brokers that coordinate groups and transactions."""

from enum import IntEnum

from headrace.client.cluster import Cluster, check_code
from headrace.protocol.schemas.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHED_FROM = 4


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1


def find_coordinator(cluster: Cluster, key_type: KeyType, key: str) -> int:
    """Return the id of the broker that coordinates a group or a transactional id."""
    request = FindCoordinatorRequest(key_type=key_type)
    is_batched = cluster.connection().version_of(request) >= _BATCHED_FROM
    if is_batched:
        request.coordinator_keys = [key]
    else:
        request.key = key

    def attempt() -> int:
        answer = cluster.ask(request, FindCoordinatorResponse)
        found = answer.coordinators[0] if is_batched else answer
        check_code(found.error_code, found.error_message)
        return found.node_id

    return cluster.retry(attempt)
