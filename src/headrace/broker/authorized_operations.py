"""The operations that a client may perform on a resource, as bit fields of responses.

Bit n is Kafka's ACL operation n. Without an authorizer every operation that a resource has
is allowed.
"""

from collections.abc import Iterable

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12

NOT_REQUESTED = -(1 << 31)
"""The value of the field if the request does not include it."""


def _bits(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC = _bits(
    (_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
)
ON_CLUSTER = _bits(
    (
        _CREATE,
        _ALTER,
        _DESCRIBE,
        _CLUSTER_ACTION,
        _DESCRIBE_CONFIGS,
        _ALTER_CONFIGS,
        _IDEMPOTENT_WRITE,
    )
)
ON_GROUP = _bits((_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS))
