"""Valid quotas: which entities have which quotas, with which values, as in Kafka.

Quotas of bytes are whole numbers, although the protocol has floating point numbers for all. An
address is given as an address: Kafka also accepts a host name, and resolves it on every node.
"""

from collections.abc import Mapping
from ipaddress import ip_address

from headrace.errors import InvalidRequest
from headrace.quotas.precedence import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)

_INT_MAX = (1 << 31) - 1
_LONG_MAX = float((1 << 63) - 1)
_FRACTION_MAX = 1e-6

_CLIENT_KEYS: Mapping[str, float | None] = {
    PRODUCER_BYTE_RATE: _LONG_MAX,
    CONSUMER_BYTE_RATE: _LONG_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_ADDRESS_KEYS: Mapping[str, float | None] = {CONNECTION_CREATION_RATE: _INT_MAX}
"""The maximum of each quota in whole numbers; None for a quota that may be a fraction."""


def check_entity(entity: Mapping[str, str | None]) -> None:
    """Raise unless an entity can have quotas."""
    if not entity:
        raise InvalidRequest("a quota needs an entity: a user, a client id, or an IP address")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"{kind!r} is not a type of entities; use user, client-id or ip")
        if name == "":
            raise InvalidRequest(f"the name of type {kind} must not be empty")
    if IP in entity and len(entity) > 1:
        raise InvalidRequest("an entity of type ip cannot be combined with a user or client id")
    address = entity.get(IP)
    if address is not None and not _is_address(address):
        raise InvalidRequest(f"{address!r} is not an IP address")


def check_value(entity: Mapping[str, str | None], key: str, value: float) -> None:
    """Raise unless an entity can have a quota of this value."""
    limits = _ADDRESS_KEYS if IP in entity else _CLIENT_KEYS
    if key not in limits:
        raise InvalidRequest(f"{key!r} is not a quota of this entity; use {', '.join(limits)}")
    if not value > 0:
        raise InvalidRequest(f"the quota {key} must be more than 0, not {value}")
    limit = limits[key]
    if limit is None:
        return
    if value > limit:
        raise InvalidRequest(f"the quota {key} must be at most {int(limit)}, not {value}")
    if value % 1.0 > _FRACTION_MAX:
        raise InvalidRequest(f"the quota {key} must be a whole number, not {value}")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
