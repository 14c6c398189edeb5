"""What all kinds of schemas have in common, for who stores, compares or uses them.

A schema is a text, a type and what it refers to. Each type has a module with a function
`parse(text, dependencies)` that gives a `ParsedSchema` or raises `InvalidSchema`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from headrace.errors import HeadraceError


class SchemaType(StrEnum):
    """The types that a registry knows, by the names that it has for them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class InvalidSchema(HeadraceError):
    """A text that is no schema of its type; the message names the place and what is wrong."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A schema that another refers to, under the name that the other has for it."""

    name: str
    text: str


class ParsedSchema(Protocol):
    """A schema that was read and found valid."""

    @property
    def type(self) -> SchemaType: ...

    def canonical(self) -> str:
        """The text that a registry stores: without differences of layout, all else kept."""
        ...

    def normalized(self) -> str:
        """The text that is the same for schemas that mean the same (`normalize=true`)."""
        ...

    def meaning(self, *, normalized: bool = False) -> str:
        """What is the same for texts that Confluent's registry holds for one schema."""
        ...

    def field_names(self) -> frozenset[str]:
        """The fields at the top, which metadata may reserve (`confluent:reserved`)."""
        ...

    def formatted(self, format: str) -> str:
        """The text in another form (`?format=`); the canonical one where the form is unknown."""
        ...
