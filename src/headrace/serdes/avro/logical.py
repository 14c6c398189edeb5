"""Logical types that each type can carry. As in Java, invalid ones are ignored."""

import math
from typing import Any, Final

from headrace.serdes.avro.model import Logical, Node

KINDS: Final = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
    "decimal": ("bytes", "fixed"),
    "big-decimal": ("bytes",),
    "duration": ("fixed",),
}
FIXED_SIZES: Final = {"uuid": 16, "duration": 12}
CONVERTED: Final = KINDS.keys() - {
    *("timestamp-nanos", "local-timestamp-nanos", "big-decimal", "duration")
}
"""Logical types with a Python type; values of the others keep their encoded form."""

INT_MAX: Final = (1 << 31) - 1


def logical_of(kind: str, properties: dict[str, Any], size: int = 0) -> Logical | None:
    """Return the logical type named by a type's properties, if it is valid there."""
    name = properties.get("logicalType")
    if not isinstance(name, str) or kind not in KINDS.get(name, ()):
        return None
    if name == "decimal":
        return _decimal(kind, properties, size)
    if kind == "fixed" and size != FIXED_SIZES[name]:
        return None
    return Logical(name)


def converts(node: Node) -> bool:
    """Return whether values of this type are converted, such as to dates and decimals."""
    logical = node.logical
    if logical is None or logical.name not in CONVERTED:
        return False
    return logical.name != "uuid" or node.kind == "string"


def _decimal(kind: str, properties: dict[str, Any], size: int) -> Logical | None:
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return None
    digits_max = INT_MAX if kind == "bytes" else math.floor(math.log10(2) * (8 * size - 1))
    if not 0 < precision <= digits_max or not 0 <= scale <= precision:
        return None
    return Logical("decimal", precision, scale)
