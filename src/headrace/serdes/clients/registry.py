"""What serializers and deserializers ask of a registry."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.serdes.registry_client import (
    NewSchema,
    Reference,
    RegisteredSchema,
    SubjectVersion,
)
from headrace.serdes.schemas import Dependency


class Registry(Protocol):
    """`RegistryClient`, or whatever else knows schemas."""

    def schema(self, id_: int | str, subject: str = "") -> RegisteredSchema | None: ...

    def latest(
        self, subject: str, metadata: Mapping[str, str] | None = None
    ) -> RegisteredSchema: ...

    def version(self, subject: str, version: int | str) -> RegisteredSchema: ...

    def versions(self, subject: str) -> list[int]: ...

    def register(
        self, subject: str, schema: NewSchema, *, normalize: bool = False
    ) -> SubjectVersion: ...

    def lookup(
        self, subject: str, schema: NewSchema, *, normalize: bool = False, deleted: bool = False
    ) -> SubjectVersion: ...

    def dependencies_of(self, references: Sequence[Reference]) -> tuple[Dependency, ...]: ...
