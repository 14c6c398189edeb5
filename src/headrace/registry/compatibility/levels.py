"""Compatibility levels: the versions and directions in which a new schema is compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from headrace.registry.compatibility.incompatibilities import Direction, Incompatibility
from headrace.serdes.schemas import ParsedSchema, SchemaType

DIFFERENT_TYPE: Final = "Incompatible because of different schema type"

S = TypeVar("S", bound=ParsedSchema, covariant=True)
C = TypeVar("C", bound=ParsedSchema)

Incompatibilities = Callable[[C, C, Direction], Sequence[Incompatibility]]
"""Compares the reader's schema with the writer's; the direction chooses the words."""


class Level(StrEnum):
    """The compatibility that a new version must have with the versions before it."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Return whether all versions count, not only the last one."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Return whether the new schema must read data of the old ones."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Return whether the old schemas must read data of the new one."""
        return self.value.startswith(("FORWARD", "FULL"))


class Policy(StrEnum):
    """The strictness of comparing JSON Schemas (`compatibilityPolicy`).

    `LOGICAL` is accepted and treated as `STRICT`.
    """

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    LOGICAL = "LOGICAL"


@dataclass(frozen=True, slots=True)
class Version(Generic[S]):
    """A registered schema; schemas of files have no number."""

    schema: S
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """The reasons why a new schema breaks a level, with the settings of the check."""

    level: Level
    type: SchemaType
    incompatibilities: tuple[Incompatibility, ...]
    old: Version[ParsedSchema] | None = None
    """The old schema, if Confluent's registry would show it."""
    validate_fields: bool = False


def conflict(
    level: Level,
    new: C,
    previous: Sequence[Version[C]],
    incompatibilities: Incompatibilities[C],
    *,
    validate_fields: bool = False,
) -> Conflict | None:
    """Return how a new schema breaks the level, or None if it does not.

    `previous` are the versions from the oldest to the newest. The conflict is the one with the
    newest version.
    """
    for version in reversed(previous if level.is_transitive else previous[-1:]):
        found, is_shown = _against(level, new, version, incompatibilities)
        if found:
            old = version if is_shown else None
            return Conflict(level, new.type, tuple(found), old, validate_fields)
    return None


def _against(
    level: Level, new: C, old: Version[C], incompatibilities: Incompatibilities[C]
) -> tuple[list[Incompatibility], bool]:
    """Return the incompatibilities with one version, and whether messages show that version."""
    if level is Level.NONE:
        return [], False
    if new.type is not old.schema.type:
        return [Incompatibility("", DIFFERENT_TYPE, Direction.BACKWARD)], False
    forward: Sequence[Incompatibility] = ()
    backward: Sequence[Incompatibility] = ()
    if level.is_read_by_old:
        forward = incompatibilities(old.schema, new, Direction.FORWARD)
    if level.reads_old:
        backward = incompatibilities(new, old.schema, Direction.BACKWARD)
    # Confluent's registry shows the old schema with the messages of one direction alone.
    return [*forward, *backward], bool(backward or not level.reads_old)
