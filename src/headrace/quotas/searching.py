"""Search of quotas by their entities: by name, by default, or by type."""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from headrace.errors import InvalidRequest, UnsupportedVersion
from headrace.quotas.precedence import CLIENT_ID, IP, USER, Entity, Quotas


class Match(IntEnum):
    """Entities of a type that a condition selects, with the numbers of the protocol."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class Condition(NamedTuple):
    """A condition on the part of an entity that has a type."""

    kind: str
    match: int
    name: str | None


def matching(
    quotas: Quotas, conditions: Iterable[Condition], *, strict: bool
) -> Iterator[tuple[Entity, Mapping[str, float]]]:
    """Return the quotas that meet all conditions.

    `strict` leaves out entities with parts of further types.
    """
    wanted = _checked(conditions)
    found = (one for one in quotas.items() if _meets(dict(one[0]), wanted, strict=strict))
    return iter(sorted(found, key=lambda one: [(kind, name or "") for kind, name in one[0]]))


def _checked(conditions: Iterable[Condition]) -> dict[str, Condition]:
    """Return the conditions by type; raise if they are invalid or exclude each other."""
    wanted: dict[str, Condition] = {}
    for condition in conditions:
        kind = condition.kind
        if not kind:
            raise InvalidRequest("a condition has an empty type of entities")
        if kind in wanted:
            raise InvalidRequest(f"a filter has more than one condition for the type {kind}")
        if kind not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersion(f"{kind!r} is not a type of entities")
        if condition.match not in tuple(Match):
            raise InvalidRequest(f"{condition.match} is not a kind of match")
        if (condition.match == Match.EXACT) == (condition.name is None):
            raise InvalidRequest(f"only a condition for one {kind} has a name")
        wanted[kind] = condition
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequest("a filter for ip cannot be combined with user or client-id")
    return wanted


def _meets(
    entity: Mapping[str, str | None], wanted: Mapping[str, Condition], *, strict: bool
) -> bool:
    if strict and len(entity) != len(wanted):
        return False
    return all(
        kind in entity and condition.match in (Match.ANY, _match_of(entity[kind], condition))
        for kind, condition in wanted.items()
    )


def _match_of(name: str | None, condition: Condition) -> int | None:
    """Return the narrowest kind of match that selects a name; None if no kind but ANY does."""
    if name is None:
        return Match.DEFAULT
    return Match.EXACT if name == condition.name else None
