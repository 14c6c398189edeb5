"""Converts descriptors to statements of a .proto file, as Confluent's registry writes them.

Clients with compiled classes send descriptors without text. Custom options are decoded by the
definitions in the pool, so it must contain the file and its imports.
"""

import struct
from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import Edition, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from headrace.serdes.protobuf.elements import (
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Fields,
    File,
    Import,
    Items,
    Message,
    OneOf,
    Option,
    Quoted,
    Range,
    Reserved,
    Rpc,
    Service,
    Value,
    Word,
)
from headrace.serdes.protobuf.tokens import unquoted

TYPE_NAMES = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
LABEL_NAMES = {
    number: name.removeprefix("LABEL_").lower()
    for name, number in FieldDescriptorProto.Label.items()
}
VISIBILITY_NAMES = {1: "local", 2: "export"}

# Confluent's order of Protobuf's own options, where it differs from their numbers.
ORDER = {
    "java_multiple_files": 8.1,
    "java_generate_equals_and_hash": 8.2,
    "java_string_check_utf8": 8.3,
    "jstype": 2.5,
}

META = "confluent.Meta"
VALUE_FIRST = ("precision", "scale")
"""Parameters of a decimal for which Confluent writes the value before the key."""


def lift(file: FileDescriptorProto, pool: DescriptorPool) -> File:
    """Return the statements of a file, which is in the pool."""
    read = GetMessageClass(pool.FindMessageTypeByName(file.DESCRIPTOR.full_name))
    return lifted_file(read.FromString(file.SerializeToString()))


def lifted_file(file: Any) -> File:
    is_edition = file.syntax == "editions"
    groups = groups_of(file.extension, file.message_type)
    return File(
        syntax="" if is_edition else file.syntax,
        edition=Edition.Name(file.edition).removeprefix("EDITION_") if is_edition else "",
        package=file.package,
        imports=imports_of(file),
        options=options_of(file.options),
        messages=messages_of(file.message_type, file.syntax, groups),
        enums=tuple(enum_of(enum, file.syntax) for enum in file.enum_type),
        extends=extends_of(file.extension, file.syntax, groups),
        services=tuple(map(service_of, file.service)),
    )


def imports_of(file: Any) -> tuple[Import, ...]:
    kinds = dict.fromkeys(file.public_dependency, "public")
    kinds |= dict.fromkeys(file.weak_dependency, "weak")
    plain = [Import(name, kinds.get(place, "")) for place, name in enumerate(file.dependency)]
    return (*plain, *(Import(name, "option") for name in file.option_dependency))


def message_of(message: Any, syntax: str) -> Message:
    groups = groups_of((*message.field, *message.extension), message.nested_type)
    fields: list[Field] = []
    oneofs: list[list[Field]] = [[] for _ in message.oneof_decl]
    for field in message.field:
        is_member = field.HasField("oneof_index") and not field.proto3_optional
        made = field_of(field, syntax, groups, is_member=is_member)
        (oneofs[field.oneof_index] if is_member else fields).append(made)
    extends = extends_of(message.extension, syntax, groups)
    return Message(
        message.name,
        tuple(fields),
        tuple(
            OneOf(declared.name, tuple(members), options_of(declared.options))
            for declared, members in zip(message.oneof_decl, oneofs, strict=True)
            if members
        ),
        messages_of(message.nested_type, syntax, groups),
        tuple(enum_of(enum, syntax) for enum in message.enum_type),
        options_of(message.options),
        (
            *(Reserved(((found.start, found.end - 1),)) for found in message.reserved_range),
            *reserved_names(message.reserved_name, syntax),
        ),
        tuple(map(extensions_of, message.extension_range)),
        extends,
        VISIBILITY_NAMES.get(message.visibility, ""),
    )


def messages_of(
    messages: Iterable[Any], syntax: str, groups: dict[str, Any]
) -> tuple[Message, ...]:
    return tuple(message_of(found, syntax) for found in messages if found.name not in groups)


def groups_of(fields: Iterable[Any], messages: Iterable[Any]) -> dict[str, Any]:
    """Return the messages that are written within a field, by name."""
    names = {
        field.type_name.rpartition(".")[2]
        for field in fields
        if field.type == FieldDescriptorProto.TYPE_GROUP
    }
    return {message.name: message for message in messages if message.name in names}


def field_of(field: Any, syntax: str, groups: dict[str, Any], *, is_member: bool) -> Field:
    label = None if is_member else label_of(field, syntax)
    options = (*options_of(field.options), *special_options(field))
    group = groups.get(field.type_name.rpartition(".")[2])
    if field.type == FieldDescriptorProto.TYPE_GROUP and group is not None:
        return Field(label, "group", field.name, field.number, options, message_of(group, syntax))
    type_ = field.type_name or TYPE_NAMES.get(field.type, "")
    return Field(label, type_, field.name, field.number, options)


def label_of(field: Any, syntax: str) -> str | None:
    has_labels = syntax in ("", "proto2") or field.proto3_optional
    if has_labels or field.label == FieldDescriptorProto.LABEL_REPEATED:
        return LABEL_NAMES.get(int(field.label))
    return None


def special_options(field: Any) -> Iterable[Option]:
    if field.HasField("default_value"):
        yield Option("default", default_of(field))
    if field.HasField("json_name"):
        yield Option("json_name", Quoted(field.json_name.encode()))


def default_of(field: Any) -> Value:
    text: str = field.default_value
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return Quoted(text.encode())
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return Quoted(unquoted(f'"{text}"'))
    return Word(text)


def extends_of(fields: Iterable[Any], syntax: str, groups: dict[str, Any]) -> tuple[Extend, ...]:
    by_extended: dict[str, list[Field]] = {}
    for field in fields:
        made = field_of(field, syntax, groups, is_member=False)
        by_extended.setdefault(field.extendee, []).append(made)
    return tuple(Extend(name, tuple(found)) for name, found in by_extended.items())


def extensions_of(found: Any) -> Extensions:
    numbers: Range = (found.start, found.end - 1)
    return Extensions((numbers,), options_of(found.options))


def reserved_names(names: Iterable[str], syntax: str) -> Iterable[Reserved]:
    for name in names:
        yield Reserved((Word(name) if syntax == "editions" else Quoted(name.encode()),))


def enum_of(enum: Any, syntax: str) -> Enum:
    return Enum(
        enum.name,
        tuple(
            Constant(value.name, value.number, options_of(value.options)) for value in enum.value
        ),
        options_of(enum.options),
        (
            *(Reserved(((found.start, found.end),)) for found in enum.reserved_range),
            *reserved_names(enum.reserved_name, syntax),
        ),
        VISIBILITY_NAMES.get(enum.visibility, ""),
    )


def service_of(service: Any) -> Service:
    return Service(
        service.name,
        tuple(
            Rpc(
                method.name,
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
                options_of(method.options),
            )
            for method in service.method
        ),
        options_of(service.options),
    )


# Options.


def options_of(options: Any) -> tuple[Option, ...]:
    """Return Protobuf's own options first, then Confluent's, then others."""
    made: list[Option] = []
    for field, value in sorted(options.ListFields(), key=place_of):
        name = f"({field.full_name})" if field.is_extension else field.name
        values = value_of(field, value)
        if isinstance(values, Items):
            made.extend(Option(name, one) for one in values.values)
        else:
            made.append(Option(name, values))
    return tuple(made)


def place_of(found: tuple[FieldDescriptor, Any]) -> tuple[int, float]:
    field = found[0]
    if not field.is_extension:
        return 0, ORDER.get(field.name, field.number)
    return (1 if field.full_name.startswith("confluent.") else 2), field.number


def value_of(field: FieldDescriptor, value: Any) -> Value:
    if is_map(field):
        return Items(tuple(entry_of(field, key, value[key]) for key in sorted(value)))
    if field.is_repeated:
        return Items(tuple(single_value(field, one) for one in value))
    return single_value(field, value)


def is_map(field: FieldDescriptor) -> bool:
    type_: Descriptor | None = field.message_type
    return type_ is not None and field.is_repeated and bool(type_.GetOptions().map_entry)


def entry_of(field: FieldDescriptor, key: Any, value: Any) -> Fields:
    parts = field.message_type.fields_by_name
    pairs = [
        ("key", single_value(parts["key"], key)),
        ("value", single_value(parts["value"], value)),
    ]
    if field.containing_type.full_name == META and key in VALUE_FIRST:
        pairs.reverse()
    return Fields(tuple(pairs))


def single_value(field: FieldDescriptor, value: Any) -> Value:
    match field.type:
        case FieldDescriptor.TYPE_MESSAGE | FieldDescriptor.TYPE_GROUP:
            return Fields(tuple((key_of(part), value_of(part, one)) for part, one in
                                value.ListFields()))  # fmt: skip
        case FieldDescriptor.TYPE_ENUM:
            constant = field.enum_type.values_by_number.get(value)
            return Word(constant.name if constant else str(value))
        case FieldDescriptor.TYPE_STRING:
            if isinstance(value, bytes):  # Protobuf returns invalid UTF-8 as bytes.
                raise ValueError(f"{field.full_name} is not a text: {value[:40]!r}")
            return Quoted(value.encode())
        case FieldDescriptor.TYPE_BYTES:
            return Quoted(value)
        case FieldDescriptor.TYPE_BOOL:
            return Word("true" if value else "false")
        case FieldDescriptor.TYPE_FLOAT:
            return Word(shortest_float(value))
        case _:
            return Word(repr(value))


def key_of(field: FieldDescriptor) -> str:
    if field.is_extension:
        return f"[{field.full_name}]"
    name: str = field.message_type.name if field.type == FieldDescriptor.TYPE_GROUP else field.name
    return name


def shortest_float(value: float) -> str:
    """Return the shortest text that gives the same 32 bits."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return text
    return f"{value:.9g}"
