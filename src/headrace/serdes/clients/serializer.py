"""Values to payloads that name their schema, registered if need be.

A serializer is called as confluent-kafka's are, `serializer(value, context)`; our producer takes
it as it is. For whatever else takes functions of a topic and a value there are `of_values` and
`of_keys`. All that is looked up is kept: after the first record of a topic no registry is asked.
"""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from headrace.errors import HeadraceError
from headrace.serdes.clients.formats import Format
from headrace.serdes.clients.plain_values import plain
from headrace.serdes.clients.registry import Registry
from headrace.serdes.clients.ruled_values import Contract, contract_told, engine_of
from headrace.serdes.registry_client import NewSchema, SubjectVersion
from headrace.serdes.rules.execution import Action
from headrace.serdes.rules.executors import Function
from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.subject_strategies import SubjectName, topic_subject
from headrace.serdes.wire_format import front_of, header_name, header_of

Parsed = TypeVar("Parsed")

_TOPICS_MAX = 10_000


class CannotSerialize(HeadraceError):
    """A serializer that lacks something it needs for this record."""


class Context(Protocol):
    """Where a value goes, as confluent-kafka tells it."""

    topic: Any
    field: Any
    headers: Any


class _Prepared(NamedTuple):
    """What all records of one topic have in common."""

    schema: Any
    front: bytes
    header: bytes
    contract: Contract | None


class SchemaSerializer(Generic[Parsed]):
    """Writes values with the schema that is given, or with the newest one of the subject."""

    def __init__(
        self,
        registry: Registry,
        format: Format[Parsed],
        schema: NewSchema | None = None,
        *,
        subject_name: SubjectName = topic_subject,
        registers: bool = True,
        latest_with: Mapping[str, str] | None = None,
        normalizes: bool = False,
        id_in_header: bool = False,
        functions: Mapping[str, Function] | None = None,
        actions: Mapping[str, Action] | None = None,
    ) -> None:
        """Without a schema the subject's newest one is used, or its newest with `latest_with`.

        Where it does not register, a schema that is not in the registry is an error. Functions
        and actions are what the rules of the schema may name.
        """
        self._registry = registry
        self._format = format
        self._given = schema
        self._parsed = None if schema is None else self._parse_given(schema)
        self._subject_name = subject_name
        self._registers = registers
        self._latest_with = latest_with
        self._normalizes = normalizes
        self._id_in_header = id_in_header
        self._engine = engine_of(functions, actions)
        self._prepared: dict[tuple[str, str], _Prepared] = {}
        self._newest: tuple[Any, Any] | None = None

    def __call__(self, value: Any, context: Context | None = None) -> bytes | None:
        """For confluent-kafka."""
        if value is None:
            return None
        if context is None or context.topic is None:
            raise CannotSerialize("a serializer must be told the topic (SerializationContext)")
        return self.to_record(context.topic, str(context.field), value, context.headers)

    def to_record(self, topic: str, part: str, value: Any, headers: Any) -> bytes | None:
        """For `headrace.Producer(value_serializer=serializer)`: headers are added to if need be."""
        if value is None:
            return None
        prepared = self._prepare(topic, part)
        before, body = self._encoded(prepared, value)
        if not self._id_in_header:
            return prepared.front + before + body
        _add_header(headers, header_name(part), prepared.header + before)
        return body

    def of_values(self, topic: str, value: Any) -> bytes | None:
        """A function of a topic and a value; it cannot put ids into headers."""
        return self.to_record(topic, "value", value, None)

    def of_keys(self, topic: str, key: Any) -> bytes | None:
        """A function of a topic and a key; it cannot put ids into headers."""
        return self.to_record(topic, "key", key, None)

    def _encoded(self, prepared: _Prepared, value: Any) -> tuple[bytes, bytes]:
        value = plain(value, self._format.schema_type)
        if prepared.contract is not None:
            value = prepared.contract.on_write(value)
        before = self._format.before(prepared.schema, value)
        return before, self._format.encode(prepared.schema, value)

    def _prepare(self, topic: str, part: str) -> _Prepared:
        prepared = self._prepared.get((topic, part))
        if prepared is None:
            prepared = self._looked_up(topic, part)
            if self._given is not None:  # The newest version may be another one soon.
                if len(self._prepared) >= _TOPICS_MAX:
                    self._prepared.clear()
                self._prepared[topic, part] = prepared
        return prepared

    def _looked_up(self, topic: str, part: str) -> _Prepared:
        if self._given is None:
            subject = self._subject_name(topic, part, None)
            found = self._registry.latest(subject, self._latest_with)
            schema = self._parse_kept(found.text, found.dependencies)
            assert found.told is not None, "a schema of a subject is told whole"
            return self._as_prepared(schema, found.told)
        assert self._parsed is not None, "it was parsed when it was given"
        subject = self._subject_name(topic, part, self._format.name(self._parsed))
        identify = self._registry.register if self._registers else self._registry.lookup
        version = identify(subject, self._given, normalize=self._normalizes)
        return self._as_prepared(self._parsed, version)

    def _as_prepared(self, schema: Parsed, version: SubjectVersion) -> _Prepared:
        contract = self._contract(schema, version)
        if not self._id_in_header:
            return _Prepared(schema, front_of(version.id), b"", contract)
        if not version.guid:
            raise CannotSerialize(
                "the registry tells no GUID, which ids in headers need; a newer one does"
            )
        return _Prepared(schema, b"", header_of(version.guid), contract)

    def _contract(self, schema: Parsed, version: SubjectVersion) -> Contract | None:
        told = contract_told(version)
        if told is None:
            return None
        return Contract(told.rules, self._format.ruled(schema, told.tags), self._engine)

    def _parse_given(self, schema: NewSchema) -> Parsed:
        if schema.schema_type != self._format.schema_type:
            raise InvalidSchema(
                f"a schema of type {schema.schema_type} is no {self._format.schema_type}"
            )
        dependencies = self._registry.dependencies_of(schema.references)
        return self._format.parse(schema.schema, dependencies)

    def _parse_kept(self, text: str, dependencies: Any) -> Parsed:
        if self._newest is None or self._newest[0] != (text, dependencies):
            self._newest = (text, dependencies), self._format.parse(text, dependencies)
        return self._newest[1]


def _add_header(headers: Any, name: str, content: bytes) -> None:
    if isinstance(headers, list):
        headers.append((name, content))
    elif isinstance(headers, dict):
        headers[name] = content
    else:
        raise CannotSerialize(
            "ids in headers need a list of headers, if an empty one: produce(..., headers=[]);"
            " headrace.Producer takes the serializer itself: value_serializer=serializer"
        )
