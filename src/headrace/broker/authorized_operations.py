"""What a client may do with a resource, as the bit fields that some answers carry.

Bit n stands for Kafka's ACL operation n. Without an authorizer everything that makes sense for
a resource is allowed.
"""

from collections.abc import Iterable

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12

NOT_ASKED = -(1 << 31)
"""The value of the field when the request did not ask for it."""


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
