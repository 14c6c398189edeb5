"""Folds maps that are written out as entry messages.

A descriptor represents a map as a repeated field of messages with the option `map_entry`.
Confluent's registry prints descriptors in this form, so a Java or Python program that registers a
class with a map leaves such a text. protoc rejects it and accepts only `map<K, V>`.
"""

from dataclasses import replace

from headrace.serdes.protobuf.elements import Field, File, Message, map_entries
from headrace.serdes.protobuf.names import resolve, within


def with_map_types(file: File) -> File:
    """Replace written-out entry messages by `map<K, V>`."""
    entries = dict(map_entries(file))
    if not entries:
        return file
    messages = tuple(
        folded(message, within(file.package, message.name), entries) for message in file.messages
    )
    return replace(file, messages=messages)


def folded(message: Message, scope: str, entries: dict[str, Message]) -> Message:
    return replace(
        message,
        fields=tuple(map_field(field, scope, entries) for field in message.fields),
        messages=tuple(
            folded(nested, within(scope, nested.name), entries)
            for nested in message.messages
            if not nested.is_map_entry
        ),
    )


def map_field(field: Field, scope: str, entries: dict[str, Message]) -> Field:
    entry = entries.get(resolve(field.type, scope, entries) or "")
    if entry is None:
        return field
    types = {part.name: part.type for part in entry.fields}
    return replace(field, label=None, type=f"map<{types.get('key')}, {types.get('value')}>")
