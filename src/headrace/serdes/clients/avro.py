"""Avro for Kafka clients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from headrace.serdes.avro import codec as avro
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.clients.deserializer import SchemaDeserializer
from headrace.serdes.clients.formats import Tags
from headrace.serdes.clients.given_schemas import GivenSchema, class_of, new_schema
from headrace.serdes.clients.options import DeserializerOptions, SerializerOptions
from headrace.serdes.clients.plain_values import maker_of
from headrace.serdes.clients.registry import Registry
from headrace.serdes.clients.ruled_values import PlainSubject
from headrace.serdes.clients.serializer import SchemaSerializer
from headrace.serdes.schemas import Dependency, SchemaType


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Avro: a reader's schema projects what was written with another.

    Who reads takes wrong defaults as they are, since what was registered cannot be changed.
    """

    lenient: bool = False
    schema_type = SchemaType.AVRO

    def parse(self, text: str, dependencies: Sequence[Dependency] = ()) -> AvroSchema:
        return parse(text, dependencies, lenient=self.lenient)

    def name(self, schema: AvroSchema) -> str | None:
        return schema.name

    def before(self, schema: AvroSchema, value: Any) -> bytes:
        return b""

    def encode(self, schema: AvroSchema, value: Any) -> bytes:
        return avro.encode(schema, value)

    def split(self, body: bytes) -> tuple[bytes, bytes]:
        return b"", body

    def ruled(self, schema: AvroSchema, tags: Tags) -> PlainSubject[AvroSchema]:
        from headrace.serdes.rules.avro_fields import visit_avro_fields

        return PlainSubject(schema, tags, visit_avro_fields)

    def maker(self, class_: type) -> Callable[[Any], Any]:
        return maker_of(class_, self.schema_type)

    def decode(
        self, writer: AvroSchema, reader: AvroSchema | None, before: bytes, body: bytes
    ) -> Any:
        return avro.decode(writer, reader, body)


class AvroSerializer(SchemaSerializer[AvroSchema]):
    """Writes values by an Avro schema: a text, a Python class, or the subject's newest."""

    def __init__(
        self,
        registry: Registry,
        schema: GivenSchema | None = None,
        **options: Unpack[SerializerOptions],
    ) -> None:
        given = new_schema(schema, SchemaType.AVRO)
        super().__init__(registry, AvroFormat(), given, **options)


class AvroDeserializer(SchemaDeserializer[AvroSchema]):
    """Reads values by the schema that each names, as the reader's schema or class has them."""

    def __init__(
        self,
        registry: Registry,
        reader: GivenSchema | None = None,
        **options: Unpack[DeserializerOptions],
    ) -> None:
        given = new_schema(reader, SchemaType.AVRO)
        options.setdefault("makes", class_of(reader))
        super().__init__(registry, AvroFormat(lenient=True), given, **options)
