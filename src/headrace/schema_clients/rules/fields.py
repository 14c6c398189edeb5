"""The fields of a value, with their names, types and tags, for field rules."""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

SCALARS = frozenset({"STRING", "BYTES", "INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "FIXED"})
"""Types that field rules visit; records, lists and maps are walked through."""

TAGS_PROPERTY = "confluent:tags"

Parsed = TypeVar("Parsed", contravariant=True)


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """One field, at any depth of the value."""

    full_name: str
    """The record's full name, a dot, and the field's name."""
    name: str
    type_name: str
    tags: frozenset[str] = frozenset()


Visit = Callable[[FieldFacts, Any], Any]
"""Receives a field and its value, and returns the new value."""


class VisitFields(Protocol[Parsed]):
    """Walks through a value of one schema type; returns it with the visits' results."""

    def __call__(self, schema: Parsed, value: Any, visit: Visit) -> Any: ...


def tags_by_path(tags: Mapping[str, Sequence[str]], full_name: str) -> frozenset[str]:
    """Return the tags of a field in metadata; paths may have `*` for one part and `**` for many."""
    return frozenset(
        tag for path, names in tags.items() if _covers(path, full_name) for tag in names
    )


def _covers(path: str, full_name: str) -> bool:
    return _fits(path.split("."), full_name.split("."))


def _fits(patterns: Sequence[str], parts: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_fits(patterns[1:], parts[skipped:]) for skipped in range(len(parts) + 1))
    return (
        bool(parts)
        and fnmatch.fnmatchcase(parts[0], patterns[0])
        and _fits(patterns[1:], parts[1:])
    )
