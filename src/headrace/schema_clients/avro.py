"""Avro for Kafka clients."""

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
from headrace.serdes.avro import codec as avro
from headrace.serdes.avro.model import Array, Field, Map, Node, Primitive, Record, Union
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.schemas import Dependency, SchemaType


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Avro: the reader's schema projects values written with another one.

    Readers accept invalid defaults, since registered schemas cannot be changed.
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
        super().__init__(registry, AvroFormat(), schema, **options)


class AvroDeserializer(SchemaDeserializer[AvroSchema]):
    """Reads values by the schema that each names, projected to the reader's schema or class."""

    def __init__(
        self,
        registry: Registry,
        reader: GivenSchema | None = None,
        **options: Unpack[DeserializerOptions],
    ) -> None:
        super().__init__(registry, AvroFormat(lenient=True), reader, **options)


def visit_avro_fields(schema: AvroSchema, value: Any, visit: Visit) -> Any:
    return _walk(schema.root, value, visit)


def _walk(node: Node, value: Any, visit: Visit) -> Any:
    match node:
        case Record() if isinstance(value, dict):
            return value | {
                field.name: _field(node, field, value[field.name], visit)
                for field in node.fields
                if field.name in value
            }
        case Array() if isinstance(value, list | tuple):
            return [_walk(node.items, one, visit) for one in value]
        case Map() if isinstance(value, dict):
            return {key: _walk(node.values, one, visit) for key, one in value.items()}
        case Union():
            return _walk(_branch(node, value), value, visit)
    return value


def _field(record: Record, field: Field, value: Any, visit: Visit) -> Any:
    node = field.type
    if isinstance(node, Union):
        node = _branch(node, value)
    if not isinstance(node, Primitive):
        return _walk(node, value, visit)
    if value is None:
        return None
    tags = frozenset(field.properties.get(TAGS_PROPERTY) or ())
    full_name = f"{record.name.full}.{field.name}"
    return visit(FieldFacts(full_name, field.name, node.kind.upper(), tags), value)


def _branch(union: Union, value: Any) -> Node:
    """Return the most likely branch of a value; the encoder makes the final choice."""
    if value is None:
        kinds: tuple[str, ...] = ("null",)
    elif isinstance(value, bool):
        kinds = ("boolean",)
    elif isinstance(value, str):
        kinds = ("string", "enum")
    elif isinstance(value, dict):
        kinds = ("record", "map")
    elif isinstance(value, list | tuple):
        kinds = ("array",)
    elif isinstance(value, bytes | bytearray):
        kinds = ("bytes", "fixed")
    elif isinstance(value, float):
        kinds = ("double", "float")
    else:
        kinds = ("long", "int", "double", "float", "bytes", "fixed", "string")
    for kind in kinds:
        for branch in union.branches:
            if branch.kind == kind:
                return branch
    return Primitive("null")
