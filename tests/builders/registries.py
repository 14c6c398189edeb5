"""A registry without a server: enough of one for serializers, with its own count of questions."""

import uuid
from collections.abc import Mapping, Sequence

from headrace.schema_clients.registry_client import (
    NewSchema,
    Reference,
    RegisteredSchema,
    RegistryRefusal,
    SubjectVersion,
)
from headrace.serdes.schemas import Dependency


class RegistryInMemory:
    """Ids by the order of registration; versions of a subject likewise."""

    def __init__(self) -> None:
        self.asked = 0
        self._schemas: list[NewSchema] = []
        self._subjects: dict[str, list[int]] = {}

    def register(
        self, subject: str, schema: NewSchema, *, normalize: bool = False
    ) -> SubjectVersion:
        self.asked += 1
        if schema not in self._schemas:
            self._schemas.append(schema)
        id_ = self._schemas.index(schema) + 1
        versions = self._subjects.setdefault(subject, [])
        if id_ not in versions:
            versions.append(id_)
        return self._version(subject, id_)

    def lookup(
        self, subject: str, schema: NewSchema, *, normalize: bool = False, deleted: bool = False
    ) -> SubjectVersion:
        self.asked += 1
        known = self._schemas.index(schema) + 1 if schema in self._schemas else 0
        if known not in self._subjects.get(subject, ()):
            raise RegistryRefusal(404, 40403, "HTTP 404: Schema not found")
        return self._version(subject, known)

    def latest(self, subject: str, metadata: Mapping[str, str] | None = None) -> RegisteredSchema:
        self.asked += 1
        if subject not in self._subjects:
            raise RegistryRefusal(404, 40401, f"HTTP 404: Subject '{subject}' not found.")
        wanted = (metadata or {}).items()
        found = [
            version
            for version in (self._version(subject, id_) for id_ in self._subjects[subject])
            if wanted <= ((version.metadata or {}).get("properties") or {}).items()
        ]
        return self._registered(found[-1])

    def version(self, subject: str, version: int | str) -> RegisteredSchema:
        self.asked += 1
        return self._registered(self._version(subject, self._subjects[subject][int(version) - 1]))

    def versions(self, subject: str) -> list[int]:
        self.asked += 1
        return list(range(1, len(self._subjects[subject]) + 1))

    def schema(self, id_: int | str, subject: str = "") -> RegisteredSchema | None:
        self.asked += 1
        for number in range(1, len(self._schemas) + 1):
            if id_ in (number, guid_of(number)):
                return self._registered(self._version("", number))
        return None

    def dependencies_of(self, references: Sequence[Reference]) -> tuple[Dependency, ...]:
        found: dict[str, Dependency] = {}
        for one in references:
            schema = self._schemas[self._subjects[one.subject][one.version - 1] - 1]
            found |= {inner.name: inner for inner in self.dependencies_of(schema.references)}
            found[one.name] = Dependency(one.name, schema.schema)
        return tuple(found.values())

    def _version(self, subject: str, id_: int) -> SubjectVersion:
        schema = self._schemas[id_ - 1]
        versions = self._subjects.get(subject, [])
        return SubjectVersion(
            schema.schema,
            id_,
            versions.index(id_) + 1 if id_ in versions else 0,
            subject,
            guid_of(id_),
            schema.schema_type,
            schema.references,
            schema.metadata,
            schema.rule_set,
        )

    def _registered(self, told: SubjectVersion) -> RegisteredSchema:
        dependencies = self.dependencies_of(told.references)
        return RegisteredSchema(told.id, told.schema_type, told.schema, dependencies, told)


def guid_of(id_: int) -> str:
    return str(uuid.UUID(int=id_))
