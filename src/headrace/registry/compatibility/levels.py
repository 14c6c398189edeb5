"""Compatibility levels: against which versions a new schema is held, and in which direction.

The messages are those of Confluent's registry, which tools take apart. Those of a type have `%s`
twice where the words "new" and "old" belong, for the reader first and then the writer: which is
which depends on the direction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from headrace.serdes.schemas import ParsedSchema

SHOWN_MAX: Final = 10 << 10
"""How much of an old schema a message shows."""

DIFFERENT_TYPE: Final = "Incompatible because of different schema type"

S = TypeVar("S", bound=ParsedSchema)

Incompatibilities = Callable[[S, S], list[str]]
"""Why data of the second schema (the writer's) cannot be read with the first (the reader's)."""


class Level(StrEnum):
    """What a new version owes to the versions before it."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all versions count, and not the last alone."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether the new schema must read what the old ones wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Whether the old schemas must read what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


class Policy(StrEnum):
    """How strictly schemas are compared (`compatibilityPolicy`); only JSON Schema knows two ways.

    `LOGICAL` is known by name alone: what it asks for beyond the strict rules is not looked at.
    """

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    LOGICAL = "LOGICAL"


@dataclass(frozen=True, slots=True)
class Version(Generic[S]):
    """A schema that is registered already; the number is unknown where none is."""

    schema: S
    number: int | None = None


def complaints(
    level: Level,
    new: S,
    previous: Sequence[Version[S]],
    incompatibilities: Incompatibilities[S],
    *,
    validate_fields: bool = False,
) -> list[str]:
    """Why a new schema breaks the level; nothing if it does not.

    `previous` are the versions from the oldest to the newest. The newest that is broken is told.
    """
    for version in reversed(previous if level.is_transitive else previous[-1:]):
        if found := _against(level, new, version, incompatibilities):
            return [*found, applied(level, validate_fields=validate_fields)]
    return []


def applied(level: Level, *, validate_fields: bool) -> str:
    """The last of all complaints: by which settings they came about."""
    validated = "true" if validate_fields else "false"
    return f"{{validateFields: '{validated}', compatibility: '{level}'}}"


def _against(
    level: Level, new: S, old: Version[S], incompatibilities: Incompatibilities[S]
) -> list[str]:
    if level is Level.NONE:
        return []
    if new.type is not old.schema.type:
        return [DIFFERENT_TYPE]
    forward: list[str] = []
    backward: list[str] = []
    if level.is_read_by_old:
        forward = [worded(text, "old", "new") for text in incompatibilities(old.schema, new)]
    if level.reads_old:
        backward = [worded(text, "new", "old") for text in incompatibilities(new, old.schema)]
    # Confluent's registry shows the old schema with the messages of one direction alone.
    shows_old = backward or (forward and not level.reads_old)
    return forward + backward + (_shown(old) if shows_old else [])


def worded(message: str, reader: str, writer: str) -> str:
    """A message of a type with the words that its two sides have in one direction."""
    return message.replace("%s", reader, 1).replace("%s", writer, 1)


def _shown(old: Version[S]) -> list[str]:
    text = old.schema.canonical()
    shown = [] if old.number is None else [f"{{oldSchemaVersion: {old.number}}}"]
    if len(text) <= SHOWN_MAX:
        return [*shown, f"{{oldSchema: '{text}'}}"]
    return [*shown, f"{{oldSchema: <truncated> '{text[:SHOWN_MAX]}...'}}"]
