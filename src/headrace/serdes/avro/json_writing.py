"""Encodes Avro's JSON encoding as bytes, as Java's JsonDecoder does.

A union's value names its branch, so no branch is guessed; bytes are texts of the first 256
characters; every field must be present, since defaults are for readers only.
"""

from typing import Any

from headrace.serdes.avro.defaults import double_of_text
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
from headrace.serdes.avro.primitives import PRIMITIVE_WRITES, write_string
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.avro.unfit import Unfit, refuse, shown
from headrace.serdes.payload_errors import UnfitValue
from headrace.serdes.varints import write_varint

Json = Any


def payload_of_json(schema: AvroSchema, value: Json) -> bytes:
    """Encode a JSON value; `UnfitValue` names an invalid field."""
    out = bytearray()
    try:
        write_json_value(schema.root, value, out)
    except Unfit as error:
        raise error.as_error() from None
    except RecursionError:
        raise UnfitValue("the value nests too deep") from None
    return bytes(out)


def write_json_value(node: Node, value: Json, out: bytearray) -> None:
    match node:
        case Primitive():
            _write_primitive(node.kind, value, out)
        case Record():
            _write_record(node, value, out)
        case Union():
            _write_union(node, value, out)
        case Enum():
            if value not in node.symbols:
                refuse(value, f"the enum {node.name.full} ({', '.join(node.symbols)})")
            out += write_varint(node.symbols.index(value))
        case Fixed():
            data = _bytes_of(value)
            if len(data) != node.size:
                refuse(value, f"the fixed {node.name.full} of {node.size} bytes")
            out += data
        case Array():
            if not isinstance(value, list):
                refuse(value, "an array")
            _write_items(node.items, value, out)
        case Map():
            if not isinstance(value, dict):
                refuse(value, "a map")
            _write_members(node.values, value, out)


def _write_primitive(kind: str, value: Json, out: bytearray) -> None:
    if kind == "bytes":
        value = _bytes_of(value)
    elif kind in ("float", "double") and isinstance(value, str):
        number = double_of_text(value)
        value = value if number is None else number
    PRIMITIVE_WRITES[kind](value, out)


def _write_record(record: Record, value: Json, out: bytearray) -> None:
    if not isinstance(value, dict):
        refuse(value, f"the record {record.name.full}")
    for field in record.fields:
        try:
            if field.name not in value:
                raise Unfit("it is missing; Avro's JSON encoding has every field")
            write_json_value(field.type, value[field.name], out)
        except Unfit as error:
            raise error.within(f".{field.name}") from None
    if len(value) > len(record.fields):
        extra = ", ".join(value.keys() - {field.name for field in record.fields})
        raise Unfit(f"the record {record.name.full} has no field {extra}")


def _write_union(union: Union, value: Json, out: bytearray) -> None:
    name = "null" if value is None else next(iter(value)) if isinstance(value, dict) else None
    for index, branch in enumerate(union.branches):
        if branch_name(branch) == name and (value is None or len(value) == 1):
            out += write_varint(index)
            write_json_value(branch, None if value is None else value[name], out)
            return
    names = [branch_name(branch) for branch in union.branches]
    example = next((other for other in names if other != "null"), "null")
    hint = (
        f'write null, or {{"{example}": ...}}' if "null" in names else f'write {{"{example}": ...}}'
    )
    raise Unfit(f"{shown(value)} names no branch of the union of {', '.join(names)}; {hint}")


def _write_items(node: Node, items: list[Json], out: bytearray) -> None:
    if items:
        out += write_varint(len(items))
    for position, item in enumerate(items):
        try:
            write_json_value(node, item, out)
        except Unfit as error:
            raise error.within(f"[{position}]") from None
    out.append(0)


def _write_members(node: Node, members: dict[str, Json], out: bytearray) -> None:
    if members:
        out += write_varint(len(members))
    for name, part in members.items():
        try:
            write_string(name, out)
            write_json_value(node, part, out)
        except Unfit as error:
            raise error.within(f"[{name!r}]") from None
    out.append(0)


def _bytes_of(value: Json) -> bytes:
    if not isinstance(value, str):
        refuse(value, "bytes, a text of characters up to \\u00ff")
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        refuse(value, "bytes, a text of characters up to \\u00ff")
