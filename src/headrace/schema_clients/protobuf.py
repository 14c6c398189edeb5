"""Protobuf for Kafka clients."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headrace.schema_clients.deserializer import SchemaDeserializer
from headrace.schema_clients.formats import Tags
from headrace.schema_clients.options import DeserializerOptions, GivenSchema, SerializerOptions
from headrace.schema_clients.plain_values import maker_of
from headrace.schema_clients.registry import Registry
from headrace.schema_clients.rules.fields import FieldFacts, Visit
from headrace.schema_clients.serializer import SchemaSerializer
from headrace.serdes.protobuf.indexes import read_indexes, write_indexes
from headrace.serdes.protobuf.messages import MessageType, message_type, message_type_at
from headrace.serdes.protobuf.parsing import ProtobufSchema, parse
from headrace.serdes.protobuf.plain_values import json_of, values_of
from headrace.serdes.schemas import Dependency, SchemaType
from headrace.serdes.wire_format import UnframedPayload


@dataclass(frozen=True, slots=True)
class ProtobufFormat:
    """Protobuf: values are messages, generated or dynamic, or their JSON as a dict.

    `message` names the message type of dicts; the default is the file's first message.
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
            raise UnframedPayload("the payload has no message indexes")
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
        assert found is not None, "split has read them"
        written = message_type_at(writer, found[0])
        if reader is None:
            return written.decode(body)
        return message_type(reader, self.message or written.name).decode(body)

    def _message_of(self, schema: ProtobufSchema, value: Any) -> MessageType:
        descriptor = getattr(value, "DESCRIPTOR", None)
        return message_type(schema, self.message or getattr(descriptor, "full_name", ""))


@dataclass(frozen=True, slots=True)
class MessageSubject:
    """Messages as rules see them: dicts by field name, with numbers, bytes and times."""

    schema: ProtobufSchema
    tags: Tags
    name: str

    def message(self, value: Any) -> Any:
        return values_of(self._message(value))

    def visit(self, value: Any, visit: Visit) -> Any:
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
        super().__init__(registry, ProtobufFormat(message), schema, **options)


class ProtobufDeserializer(SchemaDeserializer[ProtobufSchema]):
    """Reads values by the schema that each names, as the reader's schema or class."""

    def __init__(
        self,
        registry: Registry,
        reader: GivenSchema | None = None,
        *,
        message: str = "",
        **options: Unpack[DeserializerOptions],
    ) -> None:
        super().__init__(registry, ProtobufFormat(message), reader, **options)


_TYPE_NAMES = {
    FieldDescriptor.CPPTYPE_STRING: "STRING",
    FieldDescriptor.CPPTYPE_INT32: "INT",
    FieldDescriptor.CPPTYPE_UINT32: "INT",
    FieldDescriptor.CPPTYPE_INT64: "LONG",
    FieldDescriptor.CPPTYPE_UINT64: "LONG",
    FieldDescriptor.CPPTYPE_FLOAT: "FLOAT",
    FieldDescriptor.CPPTYPE_DOUBLE: "DOUBLE",
    FieldDescriptor.CPPTYPE_BOOL: "BOOLEAN",
}


def visit_protobuf_fields(schema: ProtobufSchema, value: Any, visit: Visit) -> Any:
    """Return a changed copy; only fields that are set are visited."""
    if not isinstance(value, Message):
        return value
    changed = type(value)()
    changed.CopyFrom(value)
    _FieldWalk(schema, visit).through(changed)
    return changed


class _FieldWalk:
    """A walk through messages of one schema."""

    def __init__(self, schema: ProtobufSchema, visit: Visit) -> None:
        self._visit = visit
        self._tags_of = _tag_reader(schema)

    def through(self, message: Message) -> None:
        for field, content in message.ListFields():
            if field.message_type is not None:
                for inner in _messages(field, content):
                    self.through(inner)
            elif field.cpp_type in _TYPE_NAMES:
                self._scalar(message, field, content)

    def _scalar(self, message: Message, field: FieldDescriptor, content: Any) -> None:
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        type_name = "BYTES" if is_bytes else _TYPE_NAMES[field.cpp_type]
        facts = FieldFacts(field.full_name, field.name, type_name, self._tags_of(field))
        if field.is_repeated:
            content[:] = [self._visit(facts, one) for one in content]
        else:
            setattr(message, field.name, self._visit(facts, content))


def _messages(field: FieldDescriptor, content: Any) -> Iterator[Message]:
    assert field.message_type is not None, "only fields with a message type come here"
    if field.message_type.GetOptions().map_entry:
        yield from (one for one in content.values() if isinstance(one, Message))
    elif field.is_repeated:
        yield from content
    else:
        yield content


def _tag_reader(schema: ProtobufSchema) -> Callable[[FieldDescriptor], frozenset[str]]:
    """Return a reader of tags by the schema's own pool; other pools keep the option as bytes."""
    try:
        extension: Any = schema.pool.FindExtensionByName("confluent.field_meta")
    except KeyError:
        return lambda field: frozenset()
    options_class: Any = GetMessageClass(extension.containing_type)

    def tags_of(field: FieldDescriptor) -> frozenset[str]:
        options = options_class.FromString(field.GetOptions().SerializeToString())
        return frozenset(options.Extensions[extension].tags)

    return tags_of
