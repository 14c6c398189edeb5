"""Protobuf schemas as Spark's types. protoc runs where the query is planned, not on workers."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headrace.serdes.protobuf.messages import listed
from headrace.serdes.protobuf.names import all_messages
from headrace.serdes.protobuf.parsing import ProtobufSchema, parse, pool_of
from headrace.serdes.schemas import Dependency
from headrace.serdes.schemas import InvalidSchema as InvalidProtobuf
from headrace.spark.decoding.ddl import DEPTH_MAX, TIMESTAMP
from headrace.spark.decoding.errors import InvalidSchema

TYPES: dict[int, Any] = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    # Spark has no unsigned types: the next wider one holds all values.
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}
TIMESTAMP_MESSAGE = "google.protobuf.Timestamp"


def parse_proto(text: str, imports: Mapping[str, str] | None = None) -> ProtobufSchema:
    """Parse a schema, with the files that it imports by name."""
    dependencies = [Dependency(name, content) for name, content in (imports or {}).items()]
    try:
        return parse(text, dependencies)
    except InvalidProtobuf as error:
        raise InvalidSchema(f"the Protobuf schema is invalid: {error}") from error


def compile_proto(text: str, imports: Mapping[str, str] | None = None) -> bytes:
    """Return the descriptor set of a schema and its imports."""
    return parse_proto(text, imports).descriptors


def message_of(descriptors: bytes, name: str) -> Descriptor:
    """Return the message of this name, or the first one of the file if the name is empty."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    main = files[-1]
    if not main.message_type:
        raise InvalidSchema("the Protobuf schema has no message")
    package = f"{main.package}." if main.package else ""
    known = dict(all_messages(main.message_type, main.package))
    wanted = name or main.message_type[0].name
    found = next((full for full in (wanted, f"{package}{wanted}") if full in known), None)
    if found is None:
        raise InvalidSchema(f"the Protobuf schema has no message {name}; it has {listed(known)}")
    try:
        return pool_of(files).FindMessageTypeByName(found)
    except InvalidProtobuf as error:
        raise InvalidSchema(str(error)) from error


def arrow_schema(message: Descriptor) -> Any:
    return pa.schema(struct_fields(message, message.name, ()))


def struct_fields(message: Descriptor, path: str, within: tuple[str, ...]) -> list[Any]:
    if message.full_name in within:
        raise InvalidSchema(f"{path}: the message {message.name} contains itself; no column can")
    if len(within) > DEPTH_MAX:
        raise InvalidSchema(f"{path}: the messages nest more than {DEPTH_MAX} deep")
    inside = (*within, message.full_name)
    return [
        pa.field(field.name, field_type(field, f"{path}.{field.name}", inside))
        for field in message.fields
    ]


def field_type(field: FieldDescriptor, path: str, within: tuple[str, ...]) -> Any:
    if is_map(field):
        entry = field.message_type
        key = value_type(entry.fields_by_name["key"], path, within)
        return pa.map_(key, value_type(entry.fields_by_name["value"], path, within))
    type_ = value_type(field, path, within)
    return pa.list_(pa.field("element", type_)) if field.is_repeated else type_


def value_type(field: FieldDescriptor, path: str, within: tuple[str, ...]) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        if field.message_type.full_name == TIMESTAMP_MESSAGE:
            return TIMESTAMP
        return pa.struct(struct_fields(field.message_type, path, within))
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string()
    return TYPES[field.cpp_type]


def is_map(field: FieldDescriptor) -> bool:
    return bool(
        field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
        and field.message_type.GetOptions().map_entry
    )
