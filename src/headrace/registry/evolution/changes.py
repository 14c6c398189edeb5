"""What a new schema adds to an old one, removes from it and changes, for people to read."""

from enum import StrEnum
from typing import Any

import msgspec

from headrace.serdes.schemas import ParsedSchema, SchemaType


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(msgspec.Struct, frozen=True):
    """One thing that differs, where it is, and how it is now."""

    kind: ChangeKind
    path: str
    detail: str = ""


def changes_between(old: ParsedSchema, new: ParsedSchema) -> list[Change]:
    """All that differs on the way from the old schema to the new one."""
    if old.type is not new.type:
        return [Change(ChangeKind.CHANGED, "type of schema", f"{old.type} -> {new.type}")]
    match new.type:
        case SchemaType.AVRO:
            from headrace.registry.evolution.avro_changes import avro_changes

            return avro_changes(_as_is(old), _as_is(new))
        case SchemaType.PROTOBUF:
            from headrace.registry.evolution.protobuf_changes import protobuf_changes

            return protobuf_changes(_as_is(old), _as_is(new))
        case SchemaType.JSON:
            return _json_changes(_as_is(old), _as_is(new))


def named_change(name: str, path: str) -> Change:
    """A difference that has a name of Confluent's, as FIELD_ADDED has."""
    words = name.lower().replace("_", " ")
    for kind in (ChangeKind.ADDED, ChangeKind.REMOVED):
        if f" {kind} " in f" {words} ":
            return Change(kind, path, words)
    return Change(ChangeKind.CHANGED, path, words)


def _json_changes(old: Any, new: Any) -> list[Change]:
    from headrace.registry.compatibility.json_schema import differences

    return [named_change(found.change, found.pointer) for found in differences(new, old)]


def _as_is(schema: ParsedSchema) -> Any:
    """The schema's class is known by its type, which no type checker can follow."""
    return schema
