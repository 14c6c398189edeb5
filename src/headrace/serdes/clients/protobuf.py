"""Protobuf for Kafka clients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from google.protobuf.message import Message

from headrace.serdes.clients.deserializer import SchemaDeserializer
from headrace.serdes.clients.formats import Tags
from headrace.serdes.clients.given_schemas import GivenSchema, class_of, new_schema
from headrace.serdes.clients.options import DeserializerOptions, SerializerOptions
from headrace.serdes.clients.plain_values import maker_of
from headrace.serdes.clients.registry import Registry
from headrace.serdes.clients.serializer import SchemaSerializer
from headrace.serdes.protobuf.indexes import read_indexes, write_indexes
from headrace.serdes.protobuf.messages import MessageType, message_type, message_type_at
from headrace.serdes.protobuf.parsing import ProtobufSchema, parse
from headrace.serdes.protobuf.plain_values import json_of, values_of
from headrace.serdes.rules.fields import Visit
from headrace.serdes.schemas import Dependency, SchemaType
from headrace.serdes.wire_format import UnframedPayload


@dataclass(frozen=True, slots=True)
class ProtobufFormat:
    """Protobuf: values are messages, of generated classes or not, or their JSON as a dict.

    `message` names the one that values are; without it they are the file's first, unless they are
    messages and say it themselves.
    """

    message: str = ""
    schema_type = SchemaType.PROTOBUF

    def parse(self, text: str, dependencies: Sequence[Dependency] = ()) -> ProtobufSchema:
        return parse(text, dependencies)

    def name(self, schema: ProtobufSchema) -> str | None:
        return message_type(schema, self.message).name

    def before(self, schema: ProtobufSchema, value: Any) -> bytes:
        return write_indexes(self._message_of(schema, value).indexes)

    def encode(self, schema: ProtobufSchema, value: Any) -> bytes:
        message = self._message_of(schema, value)
        return message.encode(value if hasattr(value, "DESCRIPTOR") else json_of(value))

    def split(self, body: bytes) -> tuple[bytes, bytes]:
        found = read_indexes(body)
        if found is None:
            raise UnframedPayload("the payload does not say which message of its schema it is")
        return body[: found[1]], body[found[1] :]

    def ruled(self, schema: ProtobufSchema, tags: Tags) -> "MessageSubject":
        return MessageSubject(schema, tags, self.message)

    def maker(self, class_: type) -> Callable[[Any], Any]:
        make = maker_of(class_, self.schema_type, strict=False)
        return lambda message: make(values_of(message))

    def decode(
        self, writer: ProtobufSchema, reader: ProtobufSchema | None, before: bytes, body: bytes
    ) -> Any:
        found = read_indexes(before)
        assert found is not None, "it was split off as such"
        written = message_type_at(writer, found[0])
        if reader is None:
            return written.decode(body)
        return message_type(reader, self.message or written.name).decode(body)

    def _message_of(self, schema: ProtobufSchema, value: Any) -> MessageType:
        descriptor = getattr(value, "DESCRIPTOR", None)
        return message_type(schema, self.message or getattr(descriptor, "full_name", ""))


@dataclass(frozen=True, slots=True)
class MessageSubject:
    """Messages as rules see them: dicts by the fields' names, with numbers, bytes and times."""

    schema: ProtobufSchema
    tags: Tags
    name: str

    def message(self, value: Any) -> Any:
        return values_of(self._message(value))

    def visit(self, value: Any, visit: Visit) -> Any:
        from headrace.serdes.rules.protobuf_fields import visit_protobuf_fields

        return visit_protobuf_fields(self.schema, self._message(value), visit)

    def replaced(self, value: Any, by: Any) -> Any:
        return message_type(self.schema, self._name_of(value)).from_json(json_of(by))

    def _message(self, value: Any) -> Message:
        if isinstance(value, Message):
            return value
        return message_type(self.schema, self.name).from_json(json_of(value))

    def _name_of(self, value: Any) -> str:
        return value.DESCRIPTOR.full_name if isinstance(value, Message) else self.name


class ProtobufSerializer(SchemaSerializer[ProtobufSchema]):
    """Writes values by a Protobuf schema: a text, a Python class, or the subject's newest."""

    def __init__(
        self,
        registry: Registry,
        schema: GivenSchema | None = None,
        *,
        message: str = "",
        **options: Unpack[SerializerOptions],
    ) -> None:
        given = new_schema(schema, SchemaType.PROTOBUF)
        super().__init__(registry, ProtobufFormat(message), given, **options)


class ProtobufDeserializer(SchemaDeserializer[ProtobufSchema]):
    """Reads values by the schema that each names, as the reader's schema or class has them."""

    def __init__(
        self,
        registry: Registry,
        reader: GivenSchema | None = None,
        *,
        message: str = "",
        **options: Unpack[DeserializerOptions],
    ) -> None:
        given = new_schema(reader, SchemaType.PROTOBUF)
        options.setdefault("makes", class_of(reader))
        super().__init__(registry, ProtobufFormat(message), given, **options)
