"""Resolves names in a .proto file from their scope."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)


@dataclass(frozen=True, slots=True)
class Names:
    """The full names of all types and extensions visible to a schema."""

    types: frozenset[str]
    extensions: Mapping[str, bool]
    """By full name: true for repeated ones."""


def resolve(name: str, scope: str, known: Container[str]) -> str | None:
    """Return the full name without a leading dot; the innermost scope wins."""
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    while scope:
        if f"{scope}.{name}" in known:
            return f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    return name if name in known else None


def within(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def names_of(files: Iterable[FileDescriptorProto]) -> Names:
    types: set[str] = set()
    extensions: dict[str, bool] = {}
    for file in files:
        types.update(within(file.package, enum.name) for enum in file.enum_type)
        add_extensions(extensions, file.extension, file.package)
        for name, message in all_messages(file.message_type, file.package):
            types.add(name)
            types.update(within(name, enum.name) for enum in message.enum_type)
            add_extensions(extensions, message.extension, name)
    return Names(frozenset(types), extensions)


def all_messages(
    messages: Iterable[DescriptorProto], scope: str
) -> Iterator[tuple[str, DescriptorProto]]:
    """Yield messages and their nested messages by full name."""
    for message in messages:
        name = within(scope, message.name)
        yield name, message
        yield from all_messages(message.nested_type, name)


def add_extensions(
    extensions: dict[str, bool], fields: Iterable[FieldDescriptorProto], scope: str
) -> None:
    for field in fields:
        is_repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
        extensions[within(scope, field.name)] = is_repeated
