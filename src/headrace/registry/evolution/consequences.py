"""Consequences of a schema change: the readers it breaks, the levels it keeps, and advice."""

from collections.abc import Sequence

import msgspec

from headrace.registry.compatibility.incompatibilities import Direction, Incompatibility
from headrace.registry.compatibility.levels import DIFFERENT_TYPE, Level, Version, conflict
from headrace.registry.compatibility.messages import with_detail
from headrace.registry.schema_types import installed_kind
from headrace.serdes.schemas import ParsedSchema

_BACKWARD, _FORWARD = Direction.BACKWARD, Direction.FORWARD

_IN_TWO_STEPS = "release it in two steps"

_ADVICE = {
    ("READER_FIELD_MISSING_DEFAULT_VALUE", _BACKWARD): (
        'give the new field a default; for one that may be empty: "type": ["null", ...],'
        ' "default": null'
    ),
    ("READER_FIELD_MISSING_DEFAULT_VALUE", _FORWARD): (
        f"keep the field, or {_IN_TWO_STEPS}: first a version in which it has a default; then, when"
        " all readers use that version, one without it"
    ),
    ("TYPE_MISMATCH", _BACKWARD): (
        "types may only widen (int to long, float or double; long to float or double; float to"
        " double; string and bytes to each other). For any other type, keep this field and add one"
        " of another name, with a default"
    ),
    ("TYPE_MISMATCH", _FORWARD): (
        "old readers cannot read a wider type: keep this field and add one of another name, with a"
        " default; or update all readers first (level BACKWARD)"
    ),
    ("MISSING_ENUM_SYMBOLS", _BACKWARD): (
        "keep the symbols, or give the enum a default symbol, which replaces missing symbols"
    ),
    ("MISSING_ENUM_SYMBOLS", _FORWARD): (
        f"{_IN_TWO_STEPS}: first give the enum a default symbol, which old readers use in place of"
        " new symbols; then add the symbols"
    ),
    ("MISSING_UNION_BRANCH", _BACKWARD): "keep the branch of the union: old data may use it",
    ("MISSING_UNION_BRANCH", _FORWARD): (
        f"{_IN_TWO_STEPS}: give all readers the wider union before any writer uses it (level"
        " BACKWARD)"
    ),
    ("NAME_MISMATCH", _BACKWARD): 'keep the name, or list the old one: "aliases": ["OldName"]',
    ("NAME_MISMATCH", _FORWARD): "keep the name: old readers accept no other",
    ("FIXED_SIZE_MISMATCH", _BACKWARD): "keep the size; add a field with another type of fixed",
    ("FIXED_SIZE_MISMATCH", _FORWARD): "keep the size; add a field with another type of fixed",
}
_ADVICE_BY_WORD = (
    ("PACKAGE_CHANGED", "keep the package; another one needs another subject"),
    ("MESSAGE_REMOVED", "keep the message, even if nothing uses it any more"),
    ("REQUIRED", "make the property or field optional, or give it a default"),
    ("ONEOF", "do not move fields into, out of or between oneofs"),
    ("MOVED_TO", "do not move fields into, out of or between oneofs"),
    (
        "FIELD_",
        "keep the type of the number; add a field with a new number, and reserve the old one",
    ),
    ("CLOSED_CONTENT_MODEL", "keep the property, or let the object accept additional properties"),
    (
        "OPEN_CONTENT_MODEL",
        'an open object accepts any property: close it ("additionalProperties": false) before you'
        " add optional properties",
    ),
    ("ADDITIONAL_PROPERTIES", "keep additionalProperties as it was"),
    ("ENUM_ARRAY", "keep the old values"),
    ("TYPE_", "keep the type, or list both types"),
    ("_ADDED", "remove the new limit, or apply it to a new property"),
    ("_DECREASED", "keep the limit, or widen it"),
    ("_INCREASED", "keep the limit, or widen it"),
)
_OTHER = "keep it as it was, or use another subject and move the data (headrace schema evolve)"


class Break(msgspec.Struct, frozen=True):
    """A reason why some readers fail, and advice against it."""

    name: str
    """Confluent's name, such as READER_FIELD_MISSING_DEFAULT_VALUE."""
    text: str
    advice: str


class Consequences(msgspec.Struct, frozen=True):
    """The effects of one change on readers of either schema."""

    backward: tuple[Break, ...]
    """Reasons why readers of the new schema cannot read old data."""
    forward: tuple[Break, ...]
    """Reasons why readers of the old schema cannot read new data."""


def consequences_of(old: ParsedSchema, new: ParsedSchema) -> Consequences:
    if old.type is not new.type:
        broken = (Break("TYPE_CHANGED", DIFFERENT_TYPE, "use another subject for this schema"),)
        return Consequences(broken, broken)
    compare = installed_kind(new.type).incompatibilities
    return Consequences(
        tuple(map(_as_break, compare(new, old, Direction.BACKWARD))),
        tuple(map(_as_break, compare(old, new, Direction.FORWARD))),
    )


def kept_levels(new: ParsedSchema, previous: Sequence[ParsedSchema]) -> list[Level]:
    """Return the levels that a schema satisfies after these versions, the oldest first."""
    versions = [Version(schema) for schema in previous]
    compare = installed_kind(new.type).incompatibilities
    return [level for level in Level if conflict(level, new, versions, compare) is None]


def _as_break(found: Incompatibility) -> Break:
    text = with_detail(found.text, found.detail)
    return Break(found.name, text, advice_for(found.name, found.direction))


def advice_for(name: str, direction: Direction) -> str:
    """Return what to do about an incompatibility, by Confluent's name for it."""
    found = _ADVICE.get((name, direction))
    if found is not None:
        return found
    return next((text for word, text in _ADVICE_BY_WORD if word in name), _OTHER)
