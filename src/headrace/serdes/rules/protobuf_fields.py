"""The fields of Protobuf messages. Tags stand in the option `(confluent.field_meta).tags`."""

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headrace.serdes.protobuf.parsing import ProtobufSchema
from headrace.serdes.rules.fields import FieldFacts, Visit

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
    """A changed copy; only fields that are set are visited, as others have no value."""
    if not isinstance(value, Message):
        return value
    changed = type(value)()
    changed.CopyFrom(value)
    _Walk(schema, visit).through(changed)
    return changed


class _Walk:
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
    assert field.message_type is not None, "asked before"
    if field.message_type.GetOptions().map_entry:
        yield from (one for one in content.values() if isinstance(one, Message))
    elif field.is_repeated:
        yield from content
    else:
        yield content


def _tag_reader(schema: ProtobufSchema) -> Callable[[FieldDescriptor], frozenset[str]]:
    """Options of the schema's own pool: only there `confluent.field_meta` is more than bytes."""
    try:
        extension: Any = schema.pool.FindExtensionByName("confluent.field_meta")
    except KeyError:
        return lambda field: frozenset()
    options_class: Any = GetMessageClass(extension.containing_type)

    def tags_of(field: FieldDescriptor) -> frozenset[str]:
        options = options_class.FromString(field.GetOptions().SerializeToString())
        return frozenset(options.Extensions[extension].tags)

    return tags_of
