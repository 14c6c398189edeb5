"""The operations that a client may perform on a resource, as bit fields of responses."""

from collections.abc import Iterable

from headrace.security.access import Access
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType

NOT_REQUESTED = -(1 << 31)
"""The value of the field if the request does not include it."""

_READ, _WRITE, _CREATE, _DELETE = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
)
_ALTER, _DESCRIBE = Operation.ALTER, Operation.DESCRIBE
_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

ON_TOPIC = (_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, *_CONFIGS)
ON_GROUP = (_READ, _DELETE, _DESCRIBE, *_CONFIGS)
ON_CLUSTER = (
    _CREATE,
    _ALTER,
    _DESCRIBE,
    Operation.CLUSTER_ACTION,
    *_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)


def _bits(operations: Iterable[Operation]) -> int:
    return sum(1 << one for one in operations)


_ALL = {
    ResourceType.TOPIC: _bits(ON_TOPIC),
    ResourceType.GROUP: _bits(ON_GROUP),
    ResourceType.CLUSTER: _bits(ON_CLUSTER),
}


def on_topic(access: Access, name: str) -> int:
    return _granted(access, ResourceType.TOPIC, name, ON_TOPIC)


def on_group(access: Access, group_id: str) -> int:
    return _granted(access, ResourceType.GROUP, group_id, ON_GROUP)


def on_cluster(access: Access) -> int:
    """Return the operations on the cluster; as in Kafka none without the right to describe it."""
    if not access.allows_on_cluster(Operation.DESCRIBE):
        return 0
    return _granted(access, ResourceType.CLUSTER, CLUSTER_NAME, ON_CLUSTER)


def _granted(access: Access, kind: ResourceType, name: str, operations: Iterable[Operation]) -> int:
    return _ALL[kind] if access.is_open else access.operations_on(kind, name, operations)
