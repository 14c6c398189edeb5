"""Defaults of fields: validation of JSON values, and their encoding."""

import re
from typing import Any, Final

from headrace.serdes.avro import model

INT_RANGE: Final = range(-(1 << 31), 1 << 31)
LONG_RANGE: Final = range(-(1 << 63), 1 << 63)

JAVA_DOUBLE = re.compile(
    r"\s*(?P<sign>[+-]?)(?:(?P<special>NaN|Infinity)|"
    r"(?P<digits>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)\s*",
    re.ASCII,
)


def is_default(node: model.Node, value: Any) -> bool:
    """Return whether a field of this type can have this default; a union accepts any branch's."""
    match node:
        case model.Primitive():
            return _is_primitive_default(node.kind, value)
        case model.Enum():
            return value in node.symbols
        case model.Fixed():
            return _is_byte_text(value) and len(value) == node.size
        case model.Array():
            return isinstance(value, list) and all(is_default(node.items, item) for item in value)
        case model.Map():
            return isinstance(value, dict) and all(
                is_default(node.values, part) for part in value.values()
            )
        case model.Union():
            return any(is_default(branch, value) for branch in node.branches)
        case model.Record():
            return isinstance(value, dict) and all(
                is_default(field.type, value[field.name])
                if field.name in value
                else _own_default_fits(field)
                for field in node.fields
            )


def tagged_default(node: model.Node, value: Any) -> Any:
    """Convert a default to Avro's JSON encoding, where a union's value names its branch."""
    match node:
        case model.Array():
            return [tagged_default(node.items, item) for item in value]
        case model.Map():
            return {name: tagged_default(node.values, part) for name, part in value.items()}
        case model.Union():
            branch = default_branch(node, value)
            inner = tagged_default(branch, value)
            return None if value is None else {model.branch_name(branch): inner}
        case model.Record():
            return {
                field.name: tagged_default(field.type, value.get(field.name, field.default))
                for field in node.fields
            }
    return value


def default_branch(union: model.Union, value: Any) -> model.Node:
    """Return the first branch that can have the default."""
    return next(branch for branch in union.branches if is_default(branch, value))


def double_of_text(text: str) -> float | None:
    """Parse a text as Java does for the default of a float or double."""
    found = JAVA_DOUBLE.fullmatch(text)
    if found is None:
        return None
    return float(found["sign"] + (found["digits"] or found["special"]))


def _own_default_fits(field: model.Field) -> bool:
    """Cache the result: nested records would double the work at each level."""
    if field.default_fits is None:
        field.default_fits = False  # A default that needs itself is invalid.
        field.default_fits = field.has_default and is_default(field.type, field.default)
    return field.default_fits


def _is_primitive_default(kind: str, value: Any) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return type(value) is int and value in INT_RANGE
        case "long":
            return type(value) is int and value in LONG_RANGE
        case "float" | "double":
            return type(value) in (int, float)
        case "bytes":
            return _is_byte_text(value)
    return isinstance(value, str)


def _is_byte_text(value: Any) -> bool:
    """Bytes are written as texts of the first 256 code points."""
    return isinstance(value, str) and (not value or max(value) <= "\xff")
