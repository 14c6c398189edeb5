"""The messages, enums and fields of a schema, in the form in which schemas are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from headrace.serdes.protobuf.names import all_messages, within


class Label(Enum):
    OPTIONAL = auto()
    REQUIRED = auto()
    REPEATED = auto()


class Shape(Enum):
    """The broad type of a field."""

    SCALAR = auto()
    MAP = auto()
    MESSAGE = auto()


class ScalarKind(Enum):
    """Scalars of one kind can read each other's bytes, by Protobuf's own guide."""

    GENERAL_NUMBER = auto()
    SIGNED_NUMBER = auto()
    STRING_OR_BYTES = auto()
    FIXED32 = auto()
    FIXED64 = auto()
    FLOAT = auto()
    DOUBLE = auto()


SCALAR_KINDS = {
    FieldDescriptorProto.TYPE_INT32: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_INT64: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_UINT32: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_UINT64: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_BOOL: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_ENUM: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_SINT32: ScalarKind.SIGNED_NUMBER,
    FieldDescriptorProto.TYPE_SINT64: ScalarKind.SIGNED_NUMBER,
    FieldDescriptorProto.TYPE_STRING: ScalarKind.STRING_OR_BYTES,
    FieldDescriptorProto.TYPE_BYTES: ScalarKind.STRING_OR_BYTES,
    FieldDescriptorProto.TYPE_FIXED32: ScalarKind.FIXED32,
    FieldDescriptorProto.TYPE_SFIXED32: ScalarKind.FIXED32,
    FieldDescriptorProto.TYPE_FIXED64: ScalarKind.FIXED64,
    FieldDescriptorProto.TYPE_SFIXED64: ScalarKind.FIXED64,
    FieldDescriptorProto.TYPE_FLOAT: ScalarKind.FLOAT,
    FieldDescriptorProto.TYPE_DOUBLE: ScalarKind.DOUBLE,
}

LABELS = {
    FieldDescriptorProto.LABEL_OPTIONAL: Label.OPTIONAL,
    FieldDescriptorProto.LABEL_REQUIRED: Label.REQUIRED,
    FieldDescriptorProto.LABEL_REPEATED: Label.REPEATED,
}


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """A message and its file."""

    descriptor: DescriptorProto
    file: FileDescriptorProto
    local_name: str
    """The name within the file: with the enclosing messages, without the package."""

    is_own: bool
    """True for messages of the schema itself, false for those of imported files."""

    @property
    def name(self) -> str:
        name: str = self.descriptor.name
        return name

    @property
    def full_name(self) -> str:
        return within(self.file.package, self.local_name)

    @property
    def syntax(self) -> str:
        syntax: str = self.file.syntax
        return syntax


@dataclass(frozen=True, slots=True)
class Types:
    """All messages of a schema and of its imports, by full name."""

    messages: dict[str, MessageInfo]

    def named(self, field: FieldDescriptorProto) -> MessageInfo:
        return self.messages[field.type_name.removeprefix(".")]

    def shape(self, field: FieldDescriptorProto) -> Shape:
        if field.type in SCALAR_KINDS:
            return Shape.SCALAR
        return Shape.MAP if self.named(field).descriptor.options.map_entry else Shape.MESSAGE

    def of_file(self, file: FileDescriptorProto) -> list[MessageInfo]:
        return self._written(file.message_type, file.package)

    def nested(self, info: MessageInfo) -> list[MessageInfo]:
        return self._written(info.descriptor.nested_type, info.full_name)

    def _written(self, messages: Sequence[DescriptorProto], scope: str) -> list[MessageInfo]:
        """Skip the entries of maps, which protoc generates."""
        return [
            self.messages[within(scope, message.name)]
            for message in messages
            if not message.options.map_entry
        ]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a message by number, and the oneofs of fields."""

    by_number: dict[int, FieldDescriptorProto]
    oneofs: dict[str, list[int]]
    """The oneofs in the order of the file, with the numbers of their members."""

    oneof_of: dict[int, str]


def types_of(files: Sequence[FileDescriptorProto]) -> Types:
    """Return the types of a schema's files; the last file is the schema itself."""
    messages: dict[str, MessageInfo] = {}
    for file in files:
        for local_name, message in all_messages(file.message_type, ""):
            info = MessageInfo(message, file, local_name, is_own=file.name == files[-1].name)
            messages[info.full_name] = info
    return Types(messages)


def fields_of(message: DescriptorProto) -> Fields:
    """Skip the oneof that protoc generates for an optional field of proto3."""
    by_number: dict[int, FieldDescriptorProto] = {}
    members: list[list[int]] = [[] for _ in message.oneof_decl]
    for field in message.field:
        by_number[field.number] = field
        if field.HasField("oneof_index") and not field.proto3_optional:
            members[field.oneof_index].append(field.number)
    oneofs = {
        declared.name: numbers
        for declared, numbers in zip(message.oneof_decl, members, strict=True)
        if numbers
    }
    oneof_of = {number: name for name, numbers in oneofs.items() for number in numbers}
    return Fields(by_number, oneofs, oneof_of)


def label_of(field: FieldDescriptorProto, syntax: str) -> Label | None:
    """Return the explicit label: fields of proto3, editions and oneofs may have none."""
    if field.proto3_optional:
        return Label.OPTIONAL
    if field.options.features.field_presence == FeatureSet.LEGACY_REQUIRED:
        return Label.REQUIRED
    is_in_oneof = field.HasField("oneof_index")
    if field.label == FieldDescriptorProto.LABEL_OPTIONAL and (
        is_in_oneof or syntax in ("proto3", "editions")
    ):
        return None
    return LABELS[field.label]


def constants_of(enum: EnumDescriptorProto) -> dict[int, str]:
    """Return names by number; the last of several names counts."""
    return {value.number: value.name for value in enum.value}


def is_group(field: FieldDescriptorProto) -> bool:
    return bool(field.type == FieldDescriptorProto.TYPE_GROUP)
