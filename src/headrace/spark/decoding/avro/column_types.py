"""The column types of an Avro schema, by the rules of Spark's `from_avro`.

A union with null has the type of its other branch; a union of several types is a struct with a
member for each. An enum is a string, a fixed is binary, logical types are dates, timestamps and
decimals. A record that contains itself is cut off at a depth, if one is given.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headrace.serdes.avro.empty_items import takes_no_bytes
from headrace.serdes.avro.model import Array, Enum, Fixed, Map, Node, Primitive, Record, Union
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.schemas import Dependency
from headrace.serdes.schemas import InvalidSchema as UnparsableSchema
from headrace.spark.decoding.ddl import DEPTH_MAX, DIGITS_MAX, TIMESTAMP
from headrace.spark.decoding.errors import InvalidSchema

PARTS_MAX = 20_000
"""A short schema that repeats a name may expand to a large tree of columns."""

MILLIS_MAX = (1 << 63) // 1000 - 1
"""A larger number of milliseconds has no microseconds in 64 bits."""

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
LOGICAL: dict[str, Any] = {
    "date": pa.date32(),
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
"""Spark has no types for other logical types; their columns have the written values."""

Scalar = Primitive | Enum | Fixed


def avro_schema(text: str, references: Sequence[str] = ()) -> AvroSchema:
    """Parse a record's schema.

    `references` are the texts of the schemas whose names it uses, each after those that it uses.
    """
    dependencies = [Dependency(str(number), one) for number, one in enumerate(references, start=1)]
    try:
        schema = parse(text, dependencies, lenient=True)
    except UnparsableSchema as error:
        raise InvalidSchema(f"the Avro schema cannot be read: {error}") from error
    if not isinstance(schema.root, Record):
        raise InvalidSchema(f"the Avro schema is a {schema.root.kind}; rows need a record")
    return schema


def columns_of(schema: AvroSchema, recursive_depth_max: int = 0) -> Any:
    """Return the Arrow schema of the rows.

    `recursive_depth_max` is how often a record may appear within itself; with 0 a record that
    contains itself is rejected.
    """
    type_ = _Columns(recursive_depth_max).type_of(schema.root, "the payload", ())
    return pa.schema([] if type_ is None else list(type_))


class _Columns:
    """Finds the types of a schema's columns, and counts them."""

    def __init__(self, recursive_depth_max: int) -> None:
        self._recursive_depth_max = recursive_depth_max
        self._count = 0

    def type_of(self, node: Node, path: str, within: tuple[str, ...]) -> Any:
        """Return the type of a part; None where a record is cut off. `within` are its parents."""
        self._count += 1
        if self._count > PARTS_MAX:
            raise InvalidSchema(
                f"the Avro schema has more than {PARTS_MAX:,} parts, with its names written out; if"
                " a record contains itself several times, lower recursiveFieldMaxDepth"
            )
        if len(within) > DEPTH_MAX:
            raise InvalidSchema(f"the Avro schema nests more than {DEPTH_MAX} deep at {path}")
        match node:
            case Record():
                return self._struct(node, path, within)
            case Union():
                return self._union(node, path, within)
            case Array():
                if takes_no_bytes(node.items):
                    # A few bytes could claim any number of such items.
                    raise InvalidSchema(f"{path}: an array of items that take no bytes is not read")
                item = self.type_of(node.items, f"{path}[]", (*within, "[]"))
                return None if item is None else pa.list_(pa.field("element", item))
            case Map():
                item = self.type_of(node.values, f"{path}[]", (*within, "[]"))
                return None if item is None else pa.map_(pa.string(), item)
        return scalar_type(node, path)

    def _struct(self, node: Record, path: str, within: tuple[str, ...]) -> Any:
        name = node.name.full
        depth = within.count(name)
        if depth and not self._recursive_depth_max:
            raise InvalidSchema(
                f"{path}: the record {name} contains itself, which no column can; set the option"
                " recursiveFieldMaxDepth to how often it may appear within itself"
            )
        if depth and depth >= self._recursive_depth_max:
            return None
        found = [
            (field.name, self.type_of(field.type, f"{path}.{field.name}", (*within, name)))
            for field in node.fields
        ]
        kept = [pa.field(name, type_) for name, type_ in found if type_ is not None]
        return None if found and not kept else pa.struct(kept)

    def _union(self, node: Union, path: str, within: tuple[str, ...]) -> Any:
        types = [
            self.type_of(branch, path, within) for branch in node.branches if branch.kind != "null"
        ]
        if not has_members(node):
            return _widest(types)
        members = [
            pa.field(member_name(number), type_)
            for number, type_ in enumerate(types)
            if type_ is not None
        ]
        return pa.struct(members) if members else None


def scalar_type(node: Scalar, path: str = "") -> Any:
    """Return the type of a value that contains no others."""
    logical = node.logical
    if logical is not None and logical.name == "decimal":
        if logical.precision > DIGITS_MAX:
            raise InvalidSchema(
                f"{path}: a decimal may have {DIGITS_MAX} digits, not {logical.precision}"
            )
        return pa.decimal128(logical.precision, logical.scale)
    match node:
        case Enum():
            return pa.string()
        case Fixed():
            return pa.binary()
    return (
        PRIMITIVES[node.kind]
        if logical is None
        else LOGICAL.get(logical.name, PRIMITIVES[node.kind])
    )


def is_in_millis(node: Node) -> bool:
    """Return whether the column has microseconds and the values milliseconds."""
    return (
        node.logical is not None
        and node.logical.name in LOGICAL
        and node.logical.name.endswith("-millis")
    )


def has_members(union: Union) -> bool:
    """Return whether the column of a union is a struct with a member for each branch."""
    values = [branch for branch in union.branches if branch.kind != "null"]
    scalars = [scalar_type(branch) for branch in values if isinstance(branch, Primitive)]
    if len(values) < 2 or len(scalars) < len(values):
        return len(values) > 1
    return _widest(scalars) is None


def member_name(number: int) -> str:
    """Return Spark's name for a branch of a union, counted without null."""
    return f"member{number}"


def branch_types(union: Union, type_: Any) -> list[Any]:
    """Return the type of each branch of a union whose column has this type; none may be cut off."""
    is_struct = has_members(union)
    members = iter(list(type_) if is_struct else ())
    found = []
    for branch in union.branches:
        if branch.kind == "null":
            found.append(pa.null())
        elif is_struct:
            found.append(next(members).type)
        else:
            found.append(scalar_type(branch) if isinstance(branch, Scalar) else type_)
    return found


def _widest(types: list[Any]) -> Any:
    """Return the one type that holds the values of all branches, or None."""
    match types:
        case []:
            return pa.null()
        case [type_]:
            return type_
    for one in (pa.int64(), pa.float64()):
        narrow = pa.int32() if one == pa.int64() else pa.float32()
        if set(types) == {one, narrow}:
            return one
    return None
