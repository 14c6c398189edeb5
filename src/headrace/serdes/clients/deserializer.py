"""Payloads to values, each by the schema that it names; a reader's schema projects them.

Called as confluent-kafka's deserializers are; our own consumer takes it as it is. For whatever else
takes functions of a topic and bytes there are `of_values` and `of_keys`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from headrace.errors import HeadraceError
from headrace.serdes.clients.formats import Format
from headrace.serdes.clients.migrations import Migration, migration_between
from headrace.serdes.clients.registry import Registry
from headrace.serdes.clients.ruled_values import Contract, contract_told, engine_of
from headrace.serdes.clients.serializer import Context
from headrace.serdes.registry_client import NewSchema, RegisteredSchema
from headrace.serdes.rules.execution import Action
from headrace.serdes.rules.executors import Function
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
    """Reads payloads as they were written, or as the reader's schema has them."""

    def __init__(
        self,
        registry: Registry,
        format: Format[Parsed],
        reader: NewSchema | None = None,
        *,
        makes: type | None = None,
        reads_latest: bool = False,
        latest_with: Mapping[str, str] | None = None,
        subject_name: SubjectName = topic_subject,
        functions: Mapping[str, Function] | None = None,
        actions: Mapping[str, Action] | None = None,
    ) -> None:
        """`makes` is a class whose objects the values become.

        `reads_latest` takes the newest schema of the subject as the reader's, or the newest with
        the properties `latest_with`.
        """
        self._registry = registry
        self._format = format
        self._reader: _Known[Parsed] | None = None
        if reader is not None:
            dependencies = registry.dependencies_of(reader.references)
            self._reader = _Known(-1, format.parse(reader.schema, dependencies), None)
        self._make: Callable[[Any], Any] | None = None if makes is None else format.maker(makes)
        self._reads_latest = reads_latest or latest_with is not None
        self._latest_with = latest_with
        self._subject_name = subject_name
        self._engine = engine_of(functions, actions)
        self._schemas: dict[SchemaId, _Known[Parsed]] = {}
        self._migrations: dict[tuple[str, int, int], Migration | None] = {}

    def __call__(self, payload: bytes | None, context: Context | None = None) -> Any:
        """For confluent-kafka."""
        if payload is None:
            return None
        if context is None:
            return self.from_record("", "value", payload, None)
        return self.from_record(context.topic, str(context.field), payload, context.headers)

    def from_record(self, topic: str, part: str, payload: bytes | None, headers: Any) -> Any:
        """For `headrace.Consumer(value_deserializer=deserializer)`."""
        if payload is None:
            return None
        return self._read(payload, schema_header(headers, part), topic, part)

    def of_values(self, topic: str, payload: bytes | None) -> Any:
        """A function of a topic and bytes; it sees no headers."""
        return self.from_record(topic, "value", payload, None)

    def of_keys(self, topic: str, payload: bytes | None) -> Any:
        """A function of a topic and bytes; it sees no headers."""
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
        """Found once for each pair: versions never change."""
        key = subject, writer_id, reader.id
        if key not in self._migrations:
            assert reader.told is not None, "a schema of a subject is told whole"
            found = migration_between(self._registry, subject, writer_id, reader.told, self._engine)
            if len(self._migrations) >= _SCHEMAS_MAX:
                self._migrations.clear()
            self._migrations[key] = found
        return self._migrations[key]

    def _migrated(self, writer: Parsed, written: Any, migration: Migration, reader: Parsed) -> Any:
        """What the rules leave must be a value of the reader's schema, which fills in defaults."""
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
            found = _Known(registered.id, schema, self._contract(schema, registered))
            if len(self._schemas) >= _SCHEMAS_MAX:
                self._schemas.clear()
            self._schemas[id_] = found
        return found

    def _contract(self, schema: Parsed, registered: RegisteredSchema) -> Contract | None:
        told = None if registered.told is None else contract_told(registered.told)
        if told is None:
            return None
        return Contract(told.rules, self._format.ruled(schema, told.tags), self._engine)


class _Known(NamedTuple, Generic[Parsed]):
    """A schema that payloads have named, and the rules for reading them."""

    id: int
    schema: Parsed
    contract: Contract | None
