"""Schemas as a registry's REST interface tells and takes them."""

from typing import Any

import msgspec

from headrace.serdes.schemas import Dependency, SchemaType


class Reference(msgspec.Struct, frozen=True):
    """Where a schema that another refers to is registered, and its name in the other."""

    name: str
    subject: str
    version: int


class NewSchema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema to register or to look up."""

    schema: str
    schema_type: str = SchemaType.AVRO.value
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None


class SubjectVersion(msgspec.Struct, frozen=True, rename="camel"):
    """A schema as one version of a subject, or, by its id alone, of no subject that was asked."""

    schema: str
    id: int = -1
    version: int = 0
    subject: str = ""
    guid: str = ""
    schema_type: str = SchemaType.AVRO.value
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None


class RegisteredSchema(msgspec.Struct, frozen=True):
    """A schema and all that it refers to, those that are referred to first."""

    id: int
    type: str
    text: str
    dependencies: tuple[Dependency, ...] = ()
    told: SubjectVersion | None = None
    """As the registry told it, with metadata and rules."""

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """Pairs of the name by which a schema is referred to, and its text."""
        return tuple((one.name, one.text) for one in self.dependencies)


class Verdict(msgspec.Struct, frozen=True):
    """Whether a schema may become the next version, and what speaks against it."""

    is_compatible: bool
    messages: tuple[str, ...] = ()
