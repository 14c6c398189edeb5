"""Schemas in the shape of a registry's REST interface."""

from typing import Any

import msgspec

from headrace.serdes.schemas import Dependency, SchemaType


class Reference(msgspec.Struct, frozen=True):
    """Subject and version of a referenced schema, and its name in the schema that references it."""

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
    """A schema as one version of a subject; a look-up by id alone leaves the subject empty."""

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
    """A schema and all schemas that it references, each after its own references."""

    id: int
    type: str
    text: str
    dependencies: tuple[Dependency, ...] = ()
    registration: SubjectVersion | None = None
    """The registry's answer, with metadata and rules."""

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """Pairs of the name of a reference and its text."""
        return tuple((one.name, one.text) for one in self.dependencies)


class Verdict(msgspec.Struct, frozen=True):
    """The result of a compatibility check, with the incompatibilities."""

    is_compatible: bool
    messages: tuple[str, ...] = ()
