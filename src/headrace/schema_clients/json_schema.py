"""JSON with a JSON Schema for Kafka clients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from headrace.schema_clients.deserializer import SchemaDeserializer
from headrace.schema_clients.formats import Tags
from headrace.schema_clients.options import DeserializerOptions, GivenSchema, SerializerOptions
from headrace.schema_clients.plain_values import maker_of
from headrace.schema_clients.registry import Registry
from headrace.schema_clients.ruled_values import PlainSubject
from headrace.schema_clients.rules.fields import TAGS_PROPERTY, FieldFacts, Visit
from headrace.schema_clients.serializer import SchemaSerializer
from headrace.serdes.json_schema import codec as json_schema
from headrace.serdes.json_schema.parsing import JsonSchema, parse
from headrace.serdes.json_schema.references import Place
from headrace.serdes.schemas import Dependency, SchemaType


@dataclass(frozen=True, slots=True)
class JsonSchemaFormat:
    """JSON: a value is validated by the reader's schema if there is one, or by the writer's."""

    validates: bool = True
    schema_type = SchemaType.JSON

    def parse(self, text: str, dependencies: Sequence[Dependency] = ()) -> JsonSchema:
        return parse(text, dependencies)

    def name(self, schema: JsonSchema) -> str | None:
        document = schema.document
        title = document.get("title") if isinstance(document, dict) else None
        return title if isinstance(title, str) else None

    def before(self, schema: JsonSchema, value: Any) -> bytes:
        return b""

    def encode(self, schema: JsonSchema, value: Any) -> bytes:
        return json_schema.encode(schema, value, validated=self.validates)

    def split(self, body: bytes) -> tuple[bytes, bytes]:
        return b"", body

    def ruled(self, schema: JsonSchema, tags: Tags) -> PlainSubject[JsonSchema]:
        return PlainSubject(schema, tags, visit_json_schema_fields)

    def maker(self, class_: type) -> Callable[[Any], Any]:
        return maker_of(class_, self.schema_type)

    def decode(
        self, writer: JsonSchema, reader: JsonSchema | None, before: bytes, body: bytes
    ) -> Any:
        return json_schema.decode(reader or writer, body, validated=self.validates)


class JsonSchemaSerializer(SchemaSerializer[JsonSchema]):
    """Writes values by a JSON schema: a text, a Python class, or the subject's newest."""

    def __init__(
        self,
        registry: Registry,
        schema: GivenSchema | None = None,
        *,
        validates: bool = True,
        **options: Unpack[SerializerOptions],
    ) -> None:
        super().__init__(registry, JsonSchemaFormat(validates), schema, **options)


class JsonSchemaDeserializer(SchemaDeserializer[JsonSchema]):
    """Reads values by the schema that each names, as the reader's schema or class."""

    def __init__(
        self,
        registry: Registry,
        reader: GivenSchema | None = None,
        *,
        validates: bool = True,
        **options: Unpack[DeserializerOptions],
    ) -> None:
        super().__init__(registry, JsonSchemaFormat(validates), reader, **options)


_COMBINED = ("oneOf", "anyOf", "allOf")
_DEPTH_MAX = 200
_TYPE_NAMES = {bool: "BOOLEAN", int: "LONG", float: "DOUBLE", str: "STRING", bytes: "BYTES"}


def visit_json_schema_fields(schema: JsonSchema, value: Any, visit: Visit) -> Any:
    return _FieldWalk(schema, visit).through(schema.documents.root, value, "$", 0)


class _FieldWalk:
    """A walk through a value along all schemas that may apply to it."""

    def __init__(self, schema: JsonSchema, visit: Visit) -> None:
        self._schema = schema
        self._visit = visit

    def through(self, place: Place, value: Any, path: str, depth: int) -> Any:
        schema = place.schema
        if not isinstance(schema, dict) or depth > _DEPTH_MAX:
            return value
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = self._schema.documents.resolve(reference, place.base)
            value = self.through(target, value, path, depth + 1)
        for keyword in _COMBINED:
            for inner in schema.get(keyword) or ():
                value = self.through(place.inner(inner), value, path, depth + 1)
        if isinstance(value, dict):
            return self._object(place, schema, value, path, depth)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, dict):
            return [self.through(place.inner(items), one, path, depth + 1) for one in value]
        return value

    def _object(
        self, place: Place, schema: dict[str, Any], value: dict[str, Any], path: str, depth: int
    ) -> dict[str, Any]:
        known = schema.get("properties") or {}
        return value | {
            name: self._property(place.inner(known[name]), value[name], path, name, depth)
            for name in known
            if name in value
        }

    def _property(self, place: Place, value: Any, path: str, name: str, depth: int) -> Any:
        type_name = _TYPE_NAMES.get(type(value))
        if type_name is None:
            return self.through(place, value, f"{path}.{name}", depth + 1)
        schema = place.schema
        tags = schema.get(TAGS_PROPERTY) if isinstance(schema, dict) else None
        facts = FieldFacts(f"{path}.{name}", name, type_name, frozenset(tags or ()))
        return self._visit(facts, value)
