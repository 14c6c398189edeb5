"""Deserializer: reads each payload by the schema that it names, projected to a reader's schema.

The call has the signature of confluent-kafka's deserializers; `headrace.Consumer` accepts the
object itself. `of_values` and `of_keys` are plain functions of a topic and bytes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from headrace.errors import HeadraceError
from headrace.schema_clients.formats import Format
from headrace.schema_clients.migrations import Migration, migration_between
from headrace.schema_clients.options import GivenSchema, class_of, new_schema
from headrace.schema_clients.registry import Registry
from headrace.schema_clients.registry_client import RegisteredSchema
from headrace.schema_clients.ruled_values import Contract, contract_of
from headrace.schema_clients.rules.execution import Action, RuleEngine
from headrace.schema_clients.rules.executors import Function
from headrace.schema_clients.serializer import Context
from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.subject_strategies import SubjectName, topic_subject
from headrace.serdes.wire_format import (
    GUID_SIZE,
    ID_SIZE,
    SchemaId,
    UnframedPayload,
    id_at_front,
    id_in_header,
    schema_header,
)

Parsed = TypeVar("Parsed")

_SCHEMAS_MAX = 10_000


class UnknownSchema(HeadraceError):
    """A payload names a schema that the registry does not have."""


class SchemaDeserializer(Generic[Parsed]):
    """Reads payloads as written, or as values of the reader's schema."""

    def __init__(
        self,
        registry: Registry,
        format: Format[Parsed],
        reader: GivenSchema | None = None,
        *,
        makes: type | None = None,
        reads_latest: bool = False,
        latest_with: Mapping[str, str] | None = None,
        subject_name: SubjectName = topic_subject,
        functions: Mapping[str, Function] | None = None,
        actions: Mapping[str, Action] | None = None,
    ) -> None:
        """Configure a reader; the values become objects of the class `makes`.

        `reads_latest` uses the newest schema of the subject as the reader's, `latest_with` the
        newest one with these properties.
        """
        self._registry = registry
        self._format = format
        self._reader: _Known[Parsed] | None = None
        given = new_schema(reader, format.schema_type)
        if given is not None:
            dependencies = registry.dependencies_of(given.references)
            self._reader = _Known(-1, format.parse(given.schema, dependencies), None)
        class_ = makes or class_of(reader)
        self._make: Callable[[Any], Any] | None = None if class_ is None else format.maker(class_)
        self._reads_latest = reads_latest or latest_with is not None
        self._latest_with = latest_with
        self._subject_name = subject_name
        self._engine = RuleEngine(functions or {}, actions or {})
        self._schemas: dict[SchemaId, _Known[Parsed]] = {}
        self._migrations: dict[tuple[str, int, int], Migration | None] = {}

    def __call__(self, payload: bytes | None, context: Context | None = None) -> Any:
        """Deserialize for confluent-kafka."""
        if payload is None:
            return None
        if context is None:
            return self.from_record("", "value", payload, None)
        return self.from_record(context.topic, str(context.field), payload, context.headers)

    def from_record(self, topic: str, part: str, payload: bytes | None, headers: Any) -> Any:
        """Deserialize for `headrace.Consumer(value_deserializer=deserializer)`."""
        if payload is None:
            return None
        return self._read(payload, schema_header(headers, part), topic, part)

    def of_values(self, topic: str, payload: bytes | None) -> Any:
        """Deserialize a value of a topic; ids in headers are not seen."""
        return self.from_record(topic, "value", payload, None)

    def of_keys(self, topic: str, payload: bytes | None) -> Any:
        """Deserialize a key of a topic; ids in headers are not seen."""
        return self.from_record(topic, "key", payload, None)

    def _read(self, payload: bytes, header: bytes | None, topic: str, part: str) -> Any:
        id_ = None if header is None else id_in_header(header)
        if id_ is not None and header is not None:
            before, body = header[GUID_SIZE if isinstance(id_, str) else ID_SIZE :], payload
        else:
            id_ = id_at_front(payload)
            if id_ is None:
                raise UnframedPayload(
                    f"the {part} does not begin with a zero byte and a schema id; was it written"
                    " by a serializer of a registry?"
                )
            before, body = self._format.split(payload[ID_SIZE:])
        writer = self._schema(id_)
        reader, migration = self._reader_for(topic, part, writer)
        if reader is None or migration is None:
            value = self._format.decode(writer.schema, reader and reader.schema, before, body)
        else:
            written = self._format.decode(writer.schema, None, before, body)
            value = self._migrated(writer.schema, written, migration, reader.schema)
        contract = (reader or writer).contract
        if contract is not None:
            value = contract.on_read(value)
        return value if self._make is None else self._make(value)

    def _reader_for(
        self, topic: str, part: str, writer: "_Known[Parsed]"
    ) -> "tuple[_Known[Parsed] | None, Migration | None]":
        if not self._reads_latest:
            return self._reader, None
        subject = self._subject_name(topic, part, self._format.name(writer.schema))
        newest = self._registry.latest(subject, self._latest_with)
        return self._schema(newest.id), self._migration(subject, writer.id, newest)

    def _migration(
        self, subject: str, writer_id: int, reader: RegisteredSchema
    ) -> Migration | None:
        """Look up a pair of versions once: versions never change."""
        key = subject, writer_id, reader.id
        if key not in self._migrations:
            assert reader.registration is not None, "a subject's schema has its version"
            found = migration_between(
                self._registry, subject, writer_id, reader.registration, self._engine
            )
            if len(self._migrations) >= _SCHEMAS_MAX:
                self._migrations.clear()
            self._migrations[key] = found
        return self._migrations[key]

    def _migrated(self, writer: Parsed, written: Any, migration: Migration, reader: Parsed) -> Any:
        """Return the migrated value as the reader's schema has it, with its defaults filled in."""
        message = migration.of(self._format.ruled(writer, {}).message(written))
        before = self._format.before(reader, message)
        return self._format.decode(reader, None, before, self._format.encode(reader, message))

    def _schema(self, id_: SchemaId) -> "_Known[Parsed]":
        found = self._schemas.get(id_)
        if found is None:
            registered = self._registry.schema(id_)
            if registered is None:
                raise UnknownSchema(f"the schema registry has no schema {id_}")
            if registered.type != self._format.schema_type:
                raise InvalidSchema(
                    f"schema {id_} is of type {registered.type}, not {self._format.schema_type}"
                )
            schema = self._format.parse(registered.text, registered.dependencies)
            contract = contract_of(registered.registration, self._format, schema, self._engine)
            found = _Known(registered.id, schema, contract)
            if len(self._schemas) >= _SCHEMAS_MAX:
                self._schemas.clear()
            self._schemas[id_] = found
        return found


class _Known(NamedTuple, Generic[Parsed]):
    """A schema named by payloads, and the rules for reading them."""

    id: int
    schema: Parsed
    contract: Contract | None
