"""Precedence of quotas: which one of a cluster's quotas applies to a client.

The most specific quota applies, in Kafka's order:

1. user and client id
2. user and the default of client ids
3. user
4. default of users and client id
5. default of users and default of client ids
6. default of users
7. client id
8. default of client ids

All clients that one quota counts together share its `Applied` owner: a quota of a user counts all
its client ids together, and a default counts each user or client id separately.
"""

from collections.abc import Mapping
from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]
Quotas = Mapping[Entity, Mapping[str, float]]
"""The quotas of a cluster, by sorted (type, name) pairs; a null name is the type's default."""

_DEFAULT = None


class Applied(NamedTuple):
    """The owner that a client is counted for, and its limit; an empty part is not counted by."""

    user: str
    client_id: str
    limit: float


class Limits:
    """The limits of one kind of quota, by the entities that have one."""

    __slots__ = ("_by_entity",)

    def __init__(self, quotas: Quotas, key: str) -> None:
        self._by_entity = {
            entity: values[key]
            for entity, values in quotas.items()
            if key in values and {kind for kind, _ in entity} <= {USER, CLIENT_ID}
        }

    def __bool__(self) -> bool:
        return bool(self._by_entity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits) and self._by_entity == other._by_entity

    __hash__ = None  # type: ignore[assignment]

    def find(self, user: str, client_id: str) -> Applied | None:
        """Return the quota that applies to a client; None if it has none.

        A client without an id has no quota of client ids, not even a default.
        """
        if not self._by_entity:
            return None
        found = self._of_user(user, user, client_id) or self._of_user(_DEFAULT, user, client_id)
        if found is not None or not client_id:
            return found
        limit = self._first(((CLIENT_ID, client_id),), ((CLIENT_ID, _DEFAULT),))
        return None if limit is None else Applied("", client_id, limit)

    def _of_user(self, name: str | None, user: str, client_id: str) -> Applied | None:
        """Return the quota of a user, or of the default of users, for a client."""
        part = (USER, name)
        if client_id:
            limit = self._first(((CLIENT_ID, client_id), part), ((CLIENT_ID, _DEFAULT), part))
            if limit is not None:
                return Applied(user, client_id, limit)
        limit = self._by_entity.get((part,))
        return None if limit is None else Applied(user, "", limit)

    def _first(self, *entities: Entity) -> float | None:
        for entity in entities:
            if entity in self._by_entity:
                return self._by_entity[entity]
        return None


def connection_limit(quotas: Quotas, ip: str) -> float | None:
    """Return the connections per second that an address may open; None if it has no limit."""
    for name in (ip, _DEFAULT):
        values = quotas.get(((IP, name),))
        if values is not None and CONNECTION_CREATION_RATE in values:
            return values[CONNECTION_CREATION_RATE]
    return None
