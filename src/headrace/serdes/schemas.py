"""The interface of all schema types, for storing, comparing and using schemas.

A schema is a text, a type and its references. Each type has a module with a function `parse(text,
dependencies)` that returns a `ParsedSchema` or raises `InvalidSchema`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from headrace.errors import HeadraceError


class SchemaType(StrEnum):
    """The schema types, by a registry's names."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class InvalidSchema(HeadraceError):
    """A text is not a schema of its type; the message has the position and the reason."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A referenced schema, under its name in the other schema."""

    name: str
    text: str


class ParsedSchema(Protocol):
    """A schema that was parsed and found valid."""

    @property
    def type(self) -> SchemaType: ...

    def canonical(self) -> str:
        """Return the text that a registry stores: layout normalized, all else kept."""
        ...

    def normalized(self) -> str:
        """Return the text that is equal for equivalent schemas (`normalize=true`)."""
        ...

    def meaning(self, *, normalized: bool = False) -> str:
        """Return the text that is equal for texts of one schema in Confluent's registry."""
        ...

    def field_names(self) -> frozenset[str]:
        """Return the top-level fields, which metadata may reserve (`confluent:reserved`)."""
        ...

    def formatted(self, format: str) -> str:
        """Return the text in another form (`?format=`), or the canonical one if it is unknown."""
        ...
