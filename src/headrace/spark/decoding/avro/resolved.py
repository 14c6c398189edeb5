"""Values that fastavro has resolved to a reader's schema, with members where the reader has unions.

Which branch was written is lost on the way. So a value is a member of the first branch that can
hold it, as it would be if it was written anew.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from headrace.spark.decoding.avro.schemas import Node, member_name

_INT = range(-(1 << 31), 1 << 31)
_TAKES: Mapping[str, Callable[[Node, Any], bool]] = {
    "boolean": lambda node, value: isinstance(value, bool),
    "int": lambda node, value: is_number(value) and value in _INT,
    "long": lambda node, value: is_number(value),
    "float": lambda node, value: isinstance(value, float),
    "double": lambda node, value: isinstance(value, float),
    "string": lambda node, value: isinstance(value, str),
    "enum": lambda node, value: value in node.symbols,
    "bytes": lambda node, value: isinstance(value, bytes),
    "fixed": lambda node, value: isinstance(value, bytes) and len(value) == node.size,
    "array": lambda node, value: isinstance(value, list),
    "map": lambda node, value: isinstance(value, dict),
    "record": lambda node, value: (
        isinstance(value, dict) and {field.name for field in node.fields} <= value.keys()
    ),
}


def with_members(value: Any, node: Node) -> Any:
    """The value as Arrow takes it for the column of this type."""
    if value is None:
        return None
    match node.kind:
        case "record":
            return {one.name: with_members(value[one.name], one.node) for one in node.fields}
        case "array":
            return [with_members(item, node.branches[0]) for item in value]
        case "map":
            return [(key, with_members(item, node.branches[0])) for key, item in value.items()]
        case "union" if node.has_members:
            return _member(value, node)
        case "union":
            (branch, *_) = [one for one in node.branches if takes(one, value)] or [node]
            return value if branch is node else with_members(value, branch)
    return value


def takes(node: Node, value: Any) -> bool:
    """Whether a type can hold a value."""
    match node.logical:
        case "date":
            return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        case "decimal":
            return isinstance(value, Decimal)
        case logical if logical:
            return isinstance(value, dt.datetime)
    return node.kind in _TAKES and _TAKES[node.kind](node, value)


def is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _member(value: Any, node: Node) -> dict[str, Any]:
    branches = [one for one in node.branches if one.kind != "null"]
    for number, branch in enumerate(branches):
        if takes(branch, value):
            return {member_name(number): with_members(value, branch)}
    raise ValueError(f"no branch of a union takes a {type(value).__name__}")
