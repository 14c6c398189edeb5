"""Incompatibilities as values: data of one schema that another schema cannot read."""

from dataclasses import dataclass
from enum import Enum

from headrace.errors import HeadraceError


class Direction(Enum):
    """The schema that reads the data of the other; the words for the reader and the writer."""

    BACKWARD = ("new", "old")
    FORWARD = ("old", "new")

    @property
    def reader(self) -> str:
        return self.value[0]

    @property
    def writer(self) -> str:
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A difference that keeps the reader's schema from reading the writer's data."""

    name: str
    """Confluent's name, such as FIELD_KIND_CHANGED; empty if Confluent has none for it."""
    text: str
    direction: Direction
    path: str = ""
    detail: str = ""
    """Java's additional information (Avro only)."""


class TooComplex(HeadraceError):
    """Schemas whose comparison would take too long."""

    def incompatibility(self, direction: Direction) -> Incompatibility:
        return Incompatibility("TOO_COMPLEX", str(self), direction)


def described(
    name: str, descriptions: dict[str, str], path: str, direction: Direction, detail: str = ""
) -> Incompatibility:
    """Return the incompatibility of a name, in the words that a table has for it."""
    text = descriptions[name].format(
        reader=direction.reader, writer=direction.writer, path=path, detail=detail
    )
    return Incompatibility(name, text, direction, path, detail)
