"""Serializer: writes values as payloads that name their schema, registering it if needed.

The call has the signature of confluent-kafka's serializers, `serializer(value, context)`;
`headrace.Producer` accepts the object itself. `of_values` and `of_keys` are plain functions of a
topic and a value. Look-ups are cached: only a topic's first record sends a request.
"""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from headrace.errors import HeadraceError
from headrace.schema_clients.formats import Format
from headrace.schema_clients.options import GivenSchema, new_schema
from headrace.schema_clients.plain_values import plain
from headrace.schema_clients.registry import Registry
from headrace.schema_clients.registry_client import NewSchema, SubjectVersion
from headrace.schema_clients.ruled_values import Contract, contract_of
from headrace.schema_clients.rules.execution import Action, RuleEngine
from headrace.schema_clients.rules.executors import Function
from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.subject_strategies import SubjectName, topic_subject
from headrace.serdes.wire_format import front_of, header_name, header_of

Parsed = TypeVar("Parsed")

_TOPICS_MAX = 10_000


class CannotSerialize(HeadraceError):
    """A record lacks something that the serializer needs."""


class Context(Protocol):
    """The destination of a value, as confluent-kafka passes it."""

    topic: Any
    field: Any
    headers: Any


class _Prepared(NamedTuple):
    """The parts that all records of one topic share."""

    schema: Any
    front: bytes
    header: bytes
    contract: Contract | None


class SchemaSerializer(Generic[Parsed]):
    """Writes values with the given schema, or with the newest one of the subject."""

    def __init__(
        self,
        registry: Registry,
        format: Format[Parsed],
        schema: GivenSchema | None = None,
        *,
        subject_name: SubjectName = topic_subject,
        registers: bool = True,
        latest_with: Mapping[str, str] | None = None,
        normalizes: bool = False,
        id_in_header: bool = False,
        functions: Mapping[str, Function] | None = None,
        actions: Mapping[str, Action] | None = None,
    ) -> None:
        """Configure a writer; without a schema it uses the newest, or the newest `latest_with`.

        Unless `registers`, a schema missing in the registry is an error. The rules of the schema
        may name `functions` and `actions`.
        """
        self._registry = registry
        self._format = format
        self._given = given = new_schema(schema, format.schema_type)
        self._parsed = None if given is None else self._parse_given(given)
        self._subject_name = subject_name
        self._registers = registers
        self._latest_with = latest_with
        self._normalizes = normalizes
        self._id_in_header = id_in_header
        self._engine = RuleEngine(functions or {}, actions or {})
        self._prepared: dict[tuple[str, str], _Prepared] = {}
        self._newest: tuple[Any, Any] | None = None

    def __call__(self, value: Any, context: Context | None = None) -> bytes | None:
        """Serialize for confluent-kafka."""
        if value is None:
            return None
        if context is None or context.topic is None:
            raise CannotSerialize("a serializer needs the topic: pass a SerializationContext")
        return self.to_record(context.topic, str(context.field), value, context.headers)

    def to_record(self, topic: str, part: str, value: Any, headers: Any) -> bytes | None:
        """Serialize for `headrace.Producer(value_serializer=serializer)`; may add a header."""
        if value is None:
            return None
        prepared = self._prepare(topic, part)
        before, body = self._encoded(prepared, value)
        if not self._id_in_header:
            return prepared.front + before + body
        _add_header(headers, header_name(part), prepared.header + before)
        return body

    def of_values(self, topic: str, value: Any) -> bytes | None:
        """Serialize a value of a topic; ids in headers are not possible."""
        return self.to_record(topic, "value", value, None)

    def of_keys(self, topic: str, key: Any) -> bytes | None:
        """Serialize a key of a topic; ids in headers are not possible."""
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
            if self._given is not None:  # The newest version may change.
                if len(self._prepared) >= _TOPICS_MAX:
                    self._prepared.clear()
                self._prepared[topic, part] = prepared
        return prepared

    def _looked_up(self, topic: str, part: str) -> _Prepared:
        if self._given is None:
            subject = self._subject_name(topic, part, None)
            found = self._registry.latest(subject, self._latest_with)
            schema = self._parse_kept(found.text, found.dependencies)
            assert found.registration is not None, "a subject's schema has its version"
            return self._as_prepared(schema, found.registration)
        assert self._parsed is not None, "a given schema is parsed at once"
        subject = self._subject_name(topic, part, self._format.name(self._parsed))
        identify = self._registry.register if self._registers else self._registry.lookup
        version = identify(subject, self._given, normalize=self._normalizes)
        return self._as_prepared(self._parsed, version)

    def _as_prepared(self, schema: Parsed, version: SubjectVersion) -> _Prepared:
        contract = contract_of(version, self._format, schema, self._engine)
        if not self._id_in_header:
            return _Prepared(schema, front_of(version.id), b"", contract)
        if not version.guid:
            raise CannotSerialize(
                "the registry returned no GUID, which ids in headers need; use a newer one"
            )
        return _Prepared(schema, b"", header_of(version.guid), contract)

    def _parse_given(self, schema: NewSchema) -> Parsed:
        if schema.schema_type != self._format.schema_type:
            raise InvalidSchema(
                f"a {schema.schema_type} schema was given instead of {self._format.schema_type}"
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
            "ids in headers need a list of headers, even an empty one: produce(..., headers=[]);"
            " headrace.Producer accepts the serializer itself: value_serializer=serializer"
        )
