"""Avro schemas as trees with the Spark types of their values, checked for what rows can hold.

The types are those of Spark's `from_avro`: a union with null is its other branch, one of several
types is a struct with a member for each, an enum is a string, a fixed is binary, logical types are
dates, timestamps and decimals. A record that holds itself is cut off at a depth, if one is given.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa

from headrace.spark.decoding.ddl import DEPTH_MAX, DIGITS_MAX, TIMESTAMP
from headrace.spark.decoding.errors import InvalidSchema

SCHEMA_BYTES_MAX = 1 << 20
PARTS_MAX = 20_000
"""Names that are used several times may make a large tree of a short schema."""

MILLIS_MAX = (1 << 63) // 1000 - 1
"""More milliseconds than these have no microseconds in 64 bits."""

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
    has_members: bool = False
    """A union whose branches are members of a struct, of which one is there."""
    is_cut: bool = False
    """A record without those of its fields that would lead deeper into itself."""

    @property
    def is_flat(self) -> bool:
        """Whether a value has a fixed number of parts, so that each can have its own column."""
        if self.kind in ("array", "map") or self.is_cut:
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
                return self.is_cut + sum(field.node.size_min for field in self.fields)
            case "fixed":
                return self.size
            case "float":
                return 4
            case "double":
                return 8
        return 1

    def any(self, is_meant: Callable[["Node"], bool]) -> bool:
        """Whether this or a type within it is meant."""
        inner = (*(field.node for field in self.fields), *self.branches)
        return is_meant(self) or any(node.any(is_meant) for node in inner)


CUT = Node("cut", pa.null())
"""Stands for what lies deeper in a record that holds itself than columns go."""


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A record's schema: parsed for fastavro, and as a tree for us."""

    parsed: Any
    root: Node
    named: Mapping[str, Any] = field(default_factory=dict)
    """The parsed schemas of records, enums and fixed types by name."""

    @property
    def arrow(self) -> Any:
        return pa.schema([pa.field(member.name, member.node.type) for member in self.root.fields])


def avro_schema(
    text: str, references: tuple[str, ...] = (), recursive_depth_max: int = 0
) -> AvroSchema:
    """The schema that this JSON text is; its root must be a record.

    `references` are the texts of the schemas whose names it uses, in an order to read them in.
    A record that holds itself is refused, unless it is said how often it may appear in itself.
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
    root = Tree(named, recursive_depth_max).node_of(parsed, "the payload", ())
    if root.kind != "record":
        raise InvalidSchema(f"the Avro schema is a {root.kind}; rows need a record with fields")
    return AvroSchema(parsed, root, named)


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


@dataclass(slots=True)
class Tree:
    """Makes the tree of a parsed schema."""

    named: Mapping[str, Any]
    recursive_depth_max: int
    count: int = 0

    def node_of(self, schema: Any, path: str, within: tuple[str, ...]) -> Node:
        """The tree of a part; `within` names the records around it."""
        self.count += 1
        if self.count > PARTS_MAX:
            raise InvalidSchema(
                f"the Avro schema has more than {PARTS_MAX:,} parts, with its names written out; if"
                " a record holds itself several times, lower recursiveFieldMaxDepth"
            )
        if len(within) > DEPTH_MAX:
            raise InvalidSchema(f"the Avro schema nests more than {DEPTH_MAX} deep at {path}")
        if isinstance(schema, list):
            return self.union_of(schema, path, within)
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return Node(schema, PRIMITIVES[schema])
            return self.node_of(self.named[schema], path, within)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.node_of(kind, path, within)
        match kind:
            case "record" | "error":
                return self.record_of(schema, path, within)
            case "array" | "map":
                return self.container_of(schema, path, within)
        if kind in PRIMITIVES or kind in ("enum", "fixed"):
            return leaf_of(schema, path)
        return self.node_of(kind, path, within)

    def record_of(self, schema: Any, path: str, within: tuple[str, ...]) -> Node:
        name = schema["name"]
        depth = within.count(name)
        if depth and not self.recursive_depth_max:
            raise InvalidSchema(
                f"{path}: the record {name} holds itself, which no column can; say by the option"
                " recursiveFieldMaxDepth how often it may appear within itself"
            )
        if depth and depth >= self.recursive_depth_max:
            return CUT
        found = [
            Member(
                field["name"],
                self.node_of(field["type"], f"{path}.{field['name']}", (*within, name)),
                field.get("default", NO_DEFAULT),
            )
            for field in schema["fields"]
        ]
        fields = tuple(member for member in found if member.node is not CUT)
        if found and not fields:
            return CUT
        type_ = pa.struct([pa.field(member.name, member.node.type) for member in fields])
        return Node("record", type_, name=name, fields=fields, is_cut=len(fields) < len(found))

    def container_of(self, schema: Any, path: str, within: tuple[str, ...]) -> Node:
        item_schema = schema["items"] if schema["type"] == "array" else schema["values"]
        item = self.node_of(item_schema, f"{path}[]", (*within, "[]"))
        if item is CUT:
            return CUT
        if schema["type"] == "map":
            return Node("map", pa.map_(pa.string(), item.type), branches=(item,))
        if item.size_min == 0:
            # A few bytes could claim any number of items that take none.
            raise InvalidSchema(f"{path}: an array of items that take no bytes is not read")
        return Node("array", pa.list_(pa.field("element", item.type)), branches=(item,))

    def union_of(self, schemas: list[Any], path: str, within: tuple[str, ...]) -> Node:
        """What its one branch besides null is; of int and long, or float and double, the wider."""
        branches = tuple(self.node_of(schema, path, within) for schema in schemas)
        values = [branch for branch in branches if branch.kind != "null"]
        kinds = {branch.kind for branch in values}
        if not values:
            return Node("union", pa.null(), branches=branches)
        if all(branch is CUT for branch in values):
            return CUT
        if len(values) == 1:
            return Node("union", values[0].type, branches=branches)
        if kinds == {"int", "long"} and not any(branch.logical for branch in values):
            return Node("union", pa.int64(), branches=branches)
        if kinds == {"float", "double"}:
            return Node("union", pa.float64(), branches=branches)
        members = [
            pa.field(member_name(number), branch.type)
            for number, branch in enumerate(values)
            if branch is not CUT
        ]
        return Node("union", pa.struct(members), branches=branches, has_members=True)


def member_name(number: int) -> str:
    """The name that Spark gives to a branch of a union, counted without null."""
    return f"member{number}"


def leaf_of(schema: Any, path: str) -> Node:
    """A type without others in it."""
    kind = schema["type"]
    if kind == "enum":
        return Node("enum", pa.string(), name=schema["name"], symbols=tuple(schema["symbols"]))
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
