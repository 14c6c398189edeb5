"""Avro records read one by one in plain Python, for what fastavro does not tell or does not bound.

By which branch of a union a value was written is lost in fastavro's values. And it follows a record
that holds itself for as long as the payload says so, until the process has no stack left; here a
payload that nests too deep is a bad one.
"""

import decimal
import struct
from dataclasses import dataclass, field
from typing import Any

from headrace.spark.decoding.avro.schemas import (
    CUT,
    MILLIS_MAX,
    PRIMITIVES,
    AvroSchema,
    Node,
    member_name,
)

NESTED_MAX = 64
"""So many values may lie within each other, seen or not."""
_DIGITS = decimal.Context(prec=40)


@dataclass(slots=True)
class Payload:
    """Bytes, and how far they were read."""

    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"it has no {size} bytes at byte {self.at}")
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self) -> int:
        """A zigzag number of at most 64 bits."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 63:
                raise ValueError(f"a number at byte {self.at} is too long")
        if value >> 64:
            raise ValueError(f"a number at byte {self.at} is too large")
        return (value >> 1) ^ -(value & 1)


@dataclass(slots=True)
class RowReader:
    """Reads records of one schema as values that Arrow takes for its columns."""

    schema: AvroSchema
    _fields: dict[int, dict[str, Node]] = field(default_factory=dict)
    """The fields of a record's node by their names."""

    def record(self, data: bytes) -> Any:
        """The record that all of these bytes are; ValueError if they are none."""
        payload = Payload(data)
        found = self._value(self.schema.parsed, self.schema.root, payload, 0)
        if payload.at < len(data):
            raise ValueError(f"{len(data) - payload.at} bytes follow it")
        return found

    def _value(self, schema: Any, node: Node, payload: Payload, depth: int) -> Any:
        """A value by what is written; what the columns have no place for is passed over."""
        if depth > NESTED_MAX:
            raise ValueError(f"it nests more than {NESTED_MAX} deep")
        schema = self._resolved(schema)
        if isinstance(schema, list):
            return self._union(schema, node, payload, depth)
        kind = schema if isinstance(schema, str) else schema["type"]
        match kind:
            case "record" | "error":
                return self._record(schema, node, payload, depth)
            case "array":
                item = node.branches[0] if node.branches else CUT
                return self._items(schema["items"], item, payload, depth)
            case "map":
                item = node.branches[0] if node.branches else CUT
                return self._pairs(schema["values"], item, payload, depth)
        return leaf(kind, schema, node, payload)

    def _resolved(self, schema: Any) -> Any:
        """The schema itself where it is a name, or wrapped."""
        while True:
            if isinstance(schema, list) or (isinstance(schema, str) and schema in PRIMITIVES):
                return schema
            if isinstance(schema, str):
                schema = self.schema.named[schema]
            elif isinstance(schema["type"], dict | list) or schema["type"] in self.schema.named:
                schema = schema["type"]
            else:
                return schema

    def _union(self, schema: list[Any], node: Node, payload: Payload, depth: int) -> Any:
        number = payload.long()
        if not 0 <= number < len(schema):
            raise ValueError(f"a union has no branch {number}")
        branch = node.branches[number] if node.branches else CUT
        value = self._value(schema[number], branch, payload, depth + 1)
        if not node.has_members or branch.kind in ("null", "cut"):
            return {} if node.has_members and branch is CUT else value
        before = sum(one.kind != "null" for one in node.branches[:number])
        return {member_name(before): value}

    def _record(self, schema: Any, node: Node, payload: Payload, depth: int) -> Any:
        nodes = self._fields.get(id(node))
        if nodes is None:
            nodes = self._fields[id(node)] = {one.name: one.node for one in node.fields}
        found = {}
        for member in schema["fields"]:
            name = member["name"]
            value = self._value(member["type"], nodes.get(name, CUT), payload, depth + 1)
            if name in nodes:
                found[name] = value
        return None if node is CUT else found

    def _items(self, schema: Any, item: Node, payload: Payload, depth: int) -> Any:
        found: list[Any] = []
        while count := block_count(payload):
            found.extend(self._value(schema, item, payload, depth + 1) for _ in range(count))
        return found

    def _pairs(self, schema: Any, item: Node, payload: Payload, depth: int) -> Any:
        found = {}
        while count := block_count(payload):
            for _ in range(count):
                key = payload.take(payload.long()).decode()
                found[key] = self._value(schema, item, payload, depth + 1)
        return list(found.items())


def block_count(payload: Payload) -> int:
    """How many items follow; a negative count has the size of the block behind it."""
    count = payload.long()
    if count < 0:
        payload.long()
    return abs(count)


def leaf(kind: str, schema: Any, node: Node, payload: Payload) -> Any:
    """A value without others in it."""
    match kind:
        case "null":
            return None
        case "boolean":
            return boolean(payload)
        case "int" | "long":
            return number(kind, node, payload.long())
        case "float":
            return struct.unpack("<f", payload.take(4))[0]
        case "double":
            return struct.unpack("<d", payload.take(8))[0]
        case "enum":
            return symbol(schema["symbols"], payload.long())
        case "string":
            return payload.take(payload.long()).decode()
    raw = payload.take(schema["size"] if kind == "fixed" else payload.long())
    if node.logical != "decimal":
        return raw
    unscaled = int.from_bytes(raw, "big", signed=True)
    if abs(unscaled) >= 10**node.type.precision:
        raise ValueError(f"a decimal has more than {node.type.precision} digits")
    return decimal.Decimal(unscaled).scaleb(-node.type.scale, _DIGITS)


def boolean(payload: Payload) -> bool:
    byte = payload.take(1)[0]
    if byte > 1:
        raise ValueError(f"a boolean is {byte}")
    return byte == 1


def number(kind: str, node: Node, value: int) -> int:
    if kind == "int" and not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} is no int")
    if not node.logical.endswith("-millis"):
        return value
    if kind == "long" and abs(value) > MILLIS_MAX:
        raise ValueError(f"{value} milliseconds since 1970 are more than a TIMESTAMP holds")
    return value * 1000


def symbol(symbols: list[str], place: int) -> str:
    if not 0 <= place < len(symbols):
        raise ValueError(f"an enum has no symbol {place}")
    return symbols[place]
