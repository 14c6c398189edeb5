"""The interface of a registry that serializers and deserializers use."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.schema_clients.registry_client import (
    NewSchema,
    Reference,
    RegisteredSchema,
    SubjectVersion,
)
from headrace.serdes.schemas import Dependency


class Registry(Protocol):
    """`RegistryClient`, or another source of schemas."""

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
