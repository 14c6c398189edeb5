"""Writes values of primitive types, and rejects values that would not be read back equal."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from struct import Struct
from typing import Any, Final

from headrace.serdes.avro.defaults import INT_RANGE, LONG_RANGE
from headrace.serdes.avro.unfit import refuse
from headrace.serdes.varints import write_varint

Write = Callable[[Any, bytearray], None]
"""Appends a value's bytes; after `Unfit` the appended bytes are invalid."""

FLOAT: Final = Struct("<f")
DOUBLE: Final = Struct("<d")
BYTES: Final = (bytes, bytearray)


def write_null(value: Any, out: bytearray) -> None:
    if value is not None:
        refuse(value, "null")


def write_boolean(value: Any, out: bytearray) -> None:
    if not isinstance(value, bool):
        refuse(value, "a boolean")
    out.append(value)


def write_int(value: Any, out: bytearray) -> None:
    if type(value) is not int:
        value = whole(value, "an int")
    if value not in INT_RANGE:
        refuse(value, "an int of 32 bits")
    write_number(value, out)


def write_long(value: Any, out: bytearray) -> None:
    if type(value) is not int:
        value = whole(value, "a long")
    if value not in LONG_RANGE:
        refuse(value, "a long of 64 bits")
    write_number(value, out)


def write_float(value: Any, out: bytearray) -> None:
    number = real(value)
    try:
        out += FLOAT.pack(number)
    except OverflowError:  # As in Java, a double beyond all floats becomes infinite.
        out += FLOAT.pack(math.copysign(math.inf, number))


def write_double(value: Any, out: bytearray) -> None:
    out += DOUBLE.pack(value if type(value) is float else real(value))


def write_bytes(value: Any, out: bytearray) -> None:
    if not isinstance(value, BYTES):
        refuse(value, "bytes")
    write_number(len(value), out)
    out += value


def write_string(value: Any, out: bytearray) -> None:
    if not isinstance(value, str):
        refuse(value, "a string")
    try:
        text = value.encode()
    except UnicodeEncodeError:
        refuse(value, "a string of whole characters")
    size = len(text)
    if size < 64:
        out.append(size << 1)
    else:
        out += write_varint(size)
    out += text


PRIMITIVE_WRITES: Final[dict[str, Write]] = {
    "null": write_null,
    "boolean": write_boolean,
    "int": write_int,
    "long": write_long,
    "float": write_float,
    "double": write_double,
    "bytes": write_bytes,
    "string": write_string,
}


def write_number(number: int, out: bytearray) -> None:
    if 0 <= number < 64:  # Most numbers are lengths, counts and branches.
        out.append(number << 1)
    else:
        out += write_varint(number)


def whole(value: Any, expected: str) -> int:
    """Convert an integer of another library; a bool is rejected."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        refuse(value, expected)
    return int(value)


def real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(value, "a number")
    try:
        return float(value)
    except OverflowError:
        refuse(value, "a number that a double can hold")
