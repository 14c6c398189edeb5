"""The fields of Avro's records. Tags stand at a field as `confluent:tags`."""

from typing import Any

from headrace.serdes.avro.model import Array, Field, Map, Node, Primitive, Record, Union
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.rules.fields import TAGS_PROPERTY, FieldFacts, Visit


def visit_avro_fields(schema: AvroSchema, value: Any, visit: Visit) -> Any:
    return _walk(schema.root, value, visit)


def _walk(node: Node, value: Any, visit: Visit) -> Any:
    match node:
        case Record() if isinstance(value, dict):
            return value | {
                field.name: _field(node, field, value[field.name], visit)
                for field in node.fields
                if field.name in value
            }
        case Array() if isinstance(value, list | tuple):
            return [_walk(node.items, one, visit) for one in value]
        case Map() if isinstance(value, dict):
            return {key: _walk(node.values, one, visit) for key, one in value.items()}
        case Union():
            return _walk(_branch(node, value), value, visit)
    return value


def _field(record: Record, field: Field, value: Any, visit: Visit) -> Any:
    node = field.type
    if isinstance(node, Union):
        node = _branch(node, value)
    if not isinstance(node, Primitive):
        return _walk(node, value, visit)
    if value is None:
        return None
    tags = frozenset(field.properties.get(TAGS_PROPERTY) or ())
    full_name = f"{record.name.full}.{field.name}"
    return visit(FieldFacts(full_name, field.name, node.kind.upper(), tags), value)


def _branch(union: Union, value: Any) -> Node:
    """The branch that a value is most likely of; the encoder decides for good."""
    if value is None:
        kinds: tuple[str, ...] = ("null",)
    elif isinstance(value, bool):
        kinds = ("boolean",)
    elif isinstance(value, str):
        kinds = ("string", "enum")
    elif isinstance(value, dict):
        kinds = ("record", "map")
    elif isinstance(value, list | tuple):
        kinds = ("array",)
    elif isinstance(value, bytes | bytearray):
        kinds = ("bytes", "fixed")
    elif isinstance(value, float):
        kinds = ("double", "float")
    else:
        kinds = ("long", "int", "double", "float", "bytes", "fixed", "string")
    for kind in kinds:
        for branch in union.branches:
            if branch.kind == kind:
                return branch
    return Primitive("null")
