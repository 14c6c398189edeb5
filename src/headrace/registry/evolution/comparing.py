"""The changes between two schemas of any type; the libraries of each type are imported on use."""

from typing import Any

from headrace.registry.evolution.changes import Change, ChangeKind, named_change
from headrace.serdes.schemas import ParsedSchema, SchemaType


def changes_between(old: ParsedSchema, new: ParsedSchema) -> list[Change]:
    """Return all changes from the old schema to the new one."""
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


def _json_changes(old: Any, new: Any) -> list[Change]:
    from headrace.registry.compatibility.json_schema.comparison import differences

    return [named_change(found.change.name, found.pointer) for found in differences(new, old)]


def _as_is(schema: ParsedSchema) -> Any:
    """Cast a schema to the class of its type, which the type checker cannot infer."""
    return schema
