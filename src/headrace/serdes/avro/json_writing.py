"""From Avro's JSON encoding to bytes, as Java's JsonDecoder takes it.

A union's value names its branch, so none is guessed; bytes are texts of the first 256 characters;
every field is there, defaults are for readers only.
"""

import math
import struct
from typing import Any, Final

from headrace.serdes.avro.checking import PRIMITIVE_CHECKS, Unfit, refuse, shown
from headrace.serdes.avro.defaults import double_of_text
from headrace.serdes.avro.errors import UnfitValue
from headrace.serdes.avro.model import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    branch_name,
)
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.avro.varints import write_varint

Json = Any
FLOAT: Final = struct.Struct("<f")
DOUBLE: Final = struct.Struct("<d")


def payload_of_json(schema: AvroSchema, value: Json) -> bytes:
    """The bytes of a value in JSON; `UnfitValue` names the field that is wrong."""
    written = bytearray()
    try:
        write_json_value(schema.root, value, written)
    except Unfit as error:
        raise error.as_error() from None
    except RecursionError:
        raise UnfitValue("the value nests too deep") from None
    return bytes(written)


def write_json_value(node: Node, value: Json, written: bytearray) -> None:
    match node:
        case Primitive():
            _write_primitive(node.kind, value, written)
        case Record():
            _write_record(node, value, written)
        case Union():
            _write_union(node, value, written)
        case Enum():
            if value not in node.symbols:
                refuse(value, f"the enum {node.name.full} ({', '.join(node.symbols)})")
            written += write_varint(node.symbols.index(value))
        case Fixed():
            data = _bytes_of(value)
            if len(data) != node.size:
                refuse(value, f"the fixed {node.name.full} of {node.size} bytes")
            written += data
        case Array():
            if not isinstance(value, list):
                refuse(value, "an array")
            _write_items(node.items, value, written)
        case Map():
            if not isinstance(value, dict):
                refuse(value, "a map")
            _write_members(node.values, value, written)


def _write_primitive(kind: str, value: Json, written: bytearray) -> None:
    match kind:
        case "float" | "double":
            found = double_of_text(value) if isinstance(value, str) else value
            number: float = value if found is None else found
            PRIMITIVE_CHECKS["double"](number)
            written += _packed(FLOAT if kind == "float" else DOUBLE, number)
        case "bytes":
            data = _bytes_of(value)
            written += write_varint(len(data)) + data
        case _:
            PRIMITIVE_CHECKS[kind](value)
            _write_checked(kind, value, written)


def _write_checked(kind: str, value: Json, written: bytearray) -> None:
    match kind:
        case "boolean":
            written.append(value)
        case "int" | "long":
            written += write_varint(value)
        case "string":
            _write_text(value, written)


def _write_text(value: str, written: bytearray) -> None:
    try:
        text = value.encode()
    except UnicodeEncodeError:
        refuse(value, "a text of whole characters")
    written += write_varint(len(text)) + text


def _write_record(record: Record, value: Json, written: bytearray) -> None:
    if not isinstance(value, dict):
        refuse(value, f"the record {record.name.full}")
    for field in record.fields:
        try:
            if field.name not in value:
                raise Unfit("it is missing; Avro's JSON encoding has every field")
            write_json_value(field.type, value[field.name], written)
        except Unfit as error:
            error.path.append(f".{field.name}")
            raise
    if len(value) > len(record.fields):
        extra = ", ".join(value.keys() - {field.name for field in record.fields})
        raise Unfit(f"the record {record.name.full} has no field {extra}")


def _write_union(union: Union, value: Json, written: bytearray) -> None:
    name = "null" if value is None else next(iter(value)) if isinstance(value, dict) else None
    for index, branch in enumerate(union.branches):
        if branch_name(branch) == name and (value is None or len(value) == 1):
            written += write_varint(index)
            write_json_value(branch, None if value is None else value[name], written)
            return
    names = [branch_name(branch) for branch in union.branches]
    example = next((other for other in names if other != "null"), "null")
    hint = (
        f'write null, or {{"{example}": ...}}' if "null" in names else f'write {{"{example}": ...}}'
    )
    raise Unfit(f"{shown(value)} names no branch of the union of {', '.join(names)}; {hint}")


def _write_items(node: Node, items: list[Json], written: bytearray) -> None:
    if items:
        written += write_varint(len(items))
    for position, item in enumerate(items):
        try:
            write_json_value(node, item, written)
        except Unfit as error:
            error.path.append(f"[{position}]")
            raise
    written.append(0)


def _write_members(node: Node, members: dict[str, Json], written: bytearray) -> None:
    if members:
        written += write_varint(len(members))
    for name, part in members.items():
        try:
            _write_text(name, written)
            write_json_value(node, part, written)
        except Unfit as error:
            error.path.append(f"[{name!r}]")
            raise
    written.append(0)


def _bytes_of(value: Json) -> bytes:
    if not isinstance(value, str):
        refuse(value, "bytes, a text of characters up to \\u00ff")
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        refuse(value, "bytes, a text of characters up to \\u00ff")


def _packed(layout: struct.Struct, number: float) -> bytes:
    try:
        return layout.pack(number)
    except OverflowError:
        return layout.pack(math.copysign(math.inf, number))
