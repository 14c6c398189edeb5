"""Avro schemas as trees with the Spark types of their values, checked for what rows can hold.

The types are those of Spark's `from_avro`: a union with null is its other branch, an enum is
a string, a fixed is binary, logical types are dates, timestamps and decimals.
"""

import json
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa

from headrace.spark.decoding.ddl import DEPTH_MAX, DIGITS_MAX, TIMESTAMP
from headrace.spark.decoding.errors import InvalidSchema

SCHEMA_BYTES_MAX = 1 << 20

NO_DEFAULT = object()

PRIMITIVES: dict[str, Any] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL: dict[tuple[str, str], Any] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class Member:
    """A record's field."""

    name: str
    node: "Node"
    default: Any = NO_DEFAULT


@dataclass(frozen=True, slots=True)
class Node:
    """A type within a schema, and the Arrow type of its values."""

    kind: str
    type: Any
    logical: str = ""
    name: str = ""
    fields: tuple[Member, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    branches: tuple["Node", ...] = ()
    """A union's branches, an array's item, a map's value."""

    @property
    def is_flat(self) -> bool:
        """Whether a value has a fixed number of parts, so that each can have its own column."""
        if self.kind in ("array", "map"):
            return False
        return all(field.node.is_flat for field in self.fields) and all(
            branch.is_flat for branch in self.branches
        )

    @property
    def size_min(self) -> int:
        """The fewest bytes a value can take."""
        match self.kind:
            case "null":
                return 0
            case "record":
                return sum(field.node.size_min for field in self.fields)
            case "fixed":
                return self.size
            case "float":
                return 4
            case "double":
                return 8
        return 1


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A record's schema: parsed for fastavro, and as a tree for us."""

    parsed: Any
    root: Node

    @property
    def arrow(self) -> Any:
        return pa.schema([pa.field(field.name, field.node.type) for field in self.root.fields])


def avro_schema(text: str, references: tuple[str, ...] = ()) -> AvroSchema:
    """The schema that this JSON text is; its root must be a record.

    `references` are the texts of the schemas whose names it uses, in an order to read them in.
    """
    if len(text) > SCHEMA_BYTES_MAX:
        raise InvalidSchema("the Avro schema is larger than 1 MB")
    named: dict[str, Any] = {}
    try:
        for reference in references:
            fastavro.parse_schema(plainly(json.loads(reference)), named_schemas=named)
        parsed = fastavro.parse_schema(plainly(json.loads(text)), named_schemas=named)
    except (
        ValueError, TypeError, KeyError, AttributeError, RecursionError,
        fastavro.schema.SchemaParseException, fastavro.schema.UnknownType,
    ) as error:  # fmt: skip
        reason = str(error) or type(error).__name__
        raise InvalidSchema(f"the Avro schema cannot be read: {reason}") from error
    root = node_of(parsed, named, "the payload", ())
    if root.kind != "record":
        raise InvalidSchema(f"the Avro schema is a {root.kind}; rows need a record with fields")
    return AvroSchema(parsed, root)


def plainly(schema: Any) -> Any:
    """The schema without logical types that Spark has no types for, such as uuid and times."""
    if isinstance(schema, list):
        return [plainly(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: plainly(value) if name in ("type", "fields", "items", "values") else value
        for name, value in schema.items()
    }
    logical = found.get("logicalType")
    if logical != "decimal" and (str(found.get("type")), logical) not in LOGICAL:
        found.pop("logicalType", None)
    return found


def node_of(schema: Any, named: dict[str, Any], path: str, within: tuple[str, ...]) -> Node:
    """The tree of a parsed schema; `within` names the records around it."""
    if len(within) > DEPTH_MAX:
        raise InvalidSchema(f"the Avro schema nests more than {DEPTH_MAX} deep at {path}")
    if isinstance(schema, list):
        return union_of(schema, named, path, within)
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            return Node(schema, PRIMITIVES[schema])
        return node_of(named[schema], named, path, within)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return node_of(kind, named, path, within)
    match kind:
        case "record" | "error":
            return record_of(schema, named, path, within)
        case "array" | "map":
            return container_of(schema, named, path, within)
        case "enum":
            return Node("enum", pa.string(), name=schema["name"], symbols=tuple(schema["symbols"]))
    if kind not in PRIMITIVES and kind != "fixed":
        return node_of(kind, named, path, within)
    size = schema["size"] if kind == "fixed" else 0
    logical = schema.get("logicalType", "")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema["precision"], schema.get("scale", 0)
        if not 0 <= scale <= precision <= DIGITS_MAX:
            raise InvalidSchema(f"{path}: a decimal may have {DIGITS_MAX} digits, not {precision}")
        return Node(kind, pa.decimal128(precision, scale), logical, size=size)
    if kind == "fixed":
        return Node(kind, pa.binary(), name=schema["name"], size=size)
    type_ = LOGICAL.get((kind, logical))
    return Node(kind, PRIMITIVES[kind] if type_ is None else type_, logical if type_ else "")


def record_of(schema: Any, named: dict[str, Any], path: str, within: tuple[str, ...]) -> Node:
    name = schema["name"]
    if name in within:
        raise InvalidSchema(f"{path}: the record {name} holds itself, which no column can")
    fields = tuple(
        Member(
            field["name"],
            node_of(field["type"], named, f"{path}.{field['name']}", (*within, name)),
            field.get("default", NO_DEFAULT),
        )
        for field in schema["fields"]
    )
    type_ = pa.struct([pa.field(field.name, field.node.type) for field in fields])
    return Node("record", type_, name=name, fields=fields)


def container_of(schema: Any, named: dict[str, Any], path: str, within: tuple[str, ...]) -> Node:
    item_schema = schema["items"] if schema["type"] == "array" else schema["values"]
    item = node_of(item_schema, named, f"{path}[]", (*within, "[]"))
    if schema["type"] == "map":
        return Node("map", pa.map_(pa.string(), item.type), branches=(item,))
    if item.size_min == 0:
        # A few bytes could claim any number of items that take none.
        raise InvalidSchema(f"{path}: an array of items that take no bytes is not read")
    return Node("array", pa.list_(pa.field("element", item.type)), branches=(item,))


def union_of(schemas: list[Any], named: dict[str, Any], path: str, within: tuple[str, ...]) -> Node:
    branches = tuple(node_of(schema, named, path, within) for schema in schemas)
    types = {branch.type for branch in branches if branch.kind != "null"}
    if len(types) == 1:
        type_ = types.pop()
    elif types == {pa.int32(), pa.int64()}:
        type_ = pa.int64()
    elif types == {pa.float32(), pa.float64()}:
        type_ = pa.float64()
    elif not types:
        type_ = pa.null()
    else:
        kinds = ", ".join(branch.kind for branch in branches)
        raise InvalidSchema(f"{path}: a union of {kinds} is not one type, so it is no column")
    return Node("union", type_, branches=branches)
