"""Whom a change of a schema breaks: which levels it keeps, why not others, and what would help."""

import re
from collections.abc import Sequence

import msgspec

from headrace.registry.compatibility.levels import (
    DIFFERENT_TYPE,
    Level,
    Version,
    complaints,
    worded,
)
from headrace.registry.evolution.advice import BACKWARD, FORWARD, advice_for
from headrace.registry.schema_types import installed_kind
from headrace.serdes.schemas import ParsedSchema

_CONFLUENTS = re.compile(
    r"""\{errorType:(?P<quote>['"])(?P<name>\w+)(?P=quote), description:(?P=quote)"""
    r"""(?P<text>.*?)(?P=quote)(?:, additionalInfo:'(?P<more>.*)')?\}""",
    re.DOTALL,
)


class Break(msgspec.Struct, frozen=True):
    """One thing that a reader does not survive."""

    name: str
    """Confluent's word for it, as READER_FIELD_MISSING_DEFAULT_VALUE."""
    text: str
    advice: str


class Consequences(msgspec.Struct, frozen=True):
    """Of one change, for readers of either schema."""

    backward: tuple[Break, ...]
    """Why readers of the new schema cannot read old data."""
    forward: tuple[Break, ...]
    """Why readers of the old schema cannot read new data."""


def consequences_of(old: ParsedSchema, new: ParsedSchema) -> Consequences:
    if old.type is not new.type:
        broken = (Break("TYPE_CHANGED", DIFFERENT_TYPE, "take another subject for it"),)
        return Consequences(broken, broken)
    incompatibilities = installed_kind(new.type).incompatibilities
    return Consequences(
        tuple(
            _as_break(worded(message, "new", "old"), BACKWARD)
            for message in incompatibilities(new, old)
        ),
        tuple(
            _as_break(worded(message, "old", "new"), FORWARD)
            for message in incompatibilities(old, new)
        ),
    )


def kept_levels(new: ParsedSchema, previous: Sequence[ParsedSchema]) -> list[Level]:
    """The levels that a schema would satisfy after these versions, the oldest first."""
    versions = [Version(schema) for schema in previous]
    incompatibilities = installed_kind(new.type).incompatibilities
    return [level for level in Level if not complaints(level, new, versions, incompatibilities)]


def plain_message(message: str) -> str:
    """A message of Confluent's without its braces."""
    found = _CONFLUENTS.fullmatch(message)
    return f"{found['name']}: {_text(found)}" if found else message


def _as_break(message: str, direction: str) -> Break:
    found = _CONFLUENTS.fullmatch(message)
    if found is None:
        return Break("", message, advice_for("", direction))
    return Break(found["name"], _text(found), advice_for(found["name"], direction))


def _text(found: re.Match[str]) -> str:
    """Java's detail is said already where the description has it."""
    text, more = found["text"], found["more"]
    return f"{text} ({more})" if more and more not in text else text
