"""JSON with a JSON Schema for Kafka clients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from headrace.serdes.clients.deserializer import SchemaDeserializer
from headrace.serdes.clients.formats import Tags
from headrace.serdes.clients.given_schemas import GivenSchema, class_of, new_schema
from headrace.serdes.clients.options import DeserializerOptions, SerializerOptions
from headrace.serdes.clients.plain_values import maker_of
from headrace.serdes.clients.registry import Registry
from headrace.serdes.clients.ruled_values import PlainSubject
from headrace.serdes.clients.serializer import SchemaSerializer
from headrace.serdes.json_schema import codec as json_schema
from headrace.serdes.json_schema.parsing import JsonSchema, parse
from headrace.serdes.schemas import Dependency, SchemaType


@dataclass(frozen=True, slots=True)
class JsonSchemaFormat:
    """JSON: a value is checked by the reader's schema where there is one, else by the writer's."""

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
        from headrace.serdes.rules.json_schema_fields import visit_json_schema_fields

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
        given = new_schema(schema, SchemaType.JSON)
        super().__init__(registry, JsonSchemaFormat(validates), given, **options)


class JsonSchemaDeserializer(SchemaDeserializer[JsonSchema]):
    """Reads values by the schema that each names, as the reader's schema or class has them."""

    def __init__(
        self,
        registry: Registry,
        reader: GivenSchema | None = None,
        *,
        validates: bool = True,
        **options: Unpack[DeserializerOptions],
    ) -> None:
        given = new_schema(reader, SchemaType.JSON)
        options.setdefault("makes", class_of(reader))
        super().__init__(registry, JsonSchemaFormat(validates), given, **options)
