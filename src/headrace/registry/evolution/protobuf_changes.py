"""The changes between two Protobuf schemas, with names and numbers of fields."""

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from headrace.registry.compatibility.protobuf.comparing import differences
from headrace.registry.evolution.changes import Change, named_change
from headrace.serdes.protobuf.parsing import ProtobufSchema


def protobuf_changes(old: ProtobufSchema, new: ProtobufSchema) -> list[Change]:
    return [
        named_change(found.kind, readable_path(found.path, new.descriptor, old.descriptor))
        for found in differences(new, old)
    ]


def readable_path(path: str, *files: FileDescriptorProto) -> str:
    """Return `Order.total (3)` for `#/Order/3`."""
    parts = path.removeprefix("#/").split("/")
    if not parts[-1].isdigit():
        return ".".join(parts) or "file"
    number = int(parts[-1])
    for file in files:
        for end in range(len(parts) - 1, 0, -1):  # The name of a oneof may precede the number.
            name = _member_name(file, parts[:end], number)
            if name is not None:
                return f"{'.'.join(parts[:end])}.{name} ({number})"
    return f"{'.'.join(parts[:-1])} ({number})"


def _member_name(file: FileDescriptorProto, names: list[str], number: int) -> str | None:
    """Return the name of a field or of an enum's constant by its number."""
    scope: FileDescriptorProto | DescriptorProto = file
    for name in names[:-1]:
        inner = _message(scope, name)
        if inner is None:
            return None
        scope = inner
    message = _message(scope, names[-1])
    if message is not None:
        return next((one.name for one in message.field if one.number == number), None)
    for enum in scope.enum_type:
        if enum.name == names[-1]:
            return next((one.name for one in enum.value if one.number == number), None)
    return None


def _message(scope: FileDescriptorProto | DescriptorProto, name: str) -> DescriptorProto | None:
    inner = scope.message_type if isinstance(scope, FileDescriptorProto) else scope.nested_type
    return next((one for one in inner if one.name == name), None)
