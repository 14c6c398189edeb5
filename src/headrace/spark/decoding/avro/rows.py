"""Avro records read one by one, for schemas whose values have no fixed number of parts.

Reads as `headrace.serdes.avro` does, by Java's rules of resolution, into the values that Arrow
takes for the columns: numbers of microseconds and days, unions of several types as members. As
strict as the compiled walk over flat records.
"""

from decimal import Context, Decimal
from typing import Any, Final

from headrace.serdes.avro.codec import FAILURES
from headrace.serdes.avro.model import Node, Primitive, Union
from headrace.serdes.avro.projection import PLAIN, Read, Shape, projection, read_fixed, read_long
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import CorruptPayload
from headrace.spark.decoding.avro.column_types import (
    LOGICAL,
    MILLIS_MAX,
    has_members,
    is_in_millis,
    member_name,
)

_DIGITS: Final = Context(prec=40)
_INT, _LONG = range(-(1 << 31), 1 << 31), range(-(1 << 63), 1 << 63)


class RowReader:
    """Reads records of a writer's schema as rows of a reader's."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema) -> None:
        self._read = projection(writer.root, reader.root, ROWS)

    def record(self, payload: bytes) -> Any:
        """Return the record that the whole payload is; raise ValueError if it is not one."""
        try:
            value, end = self._read(payload, 0)
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except IndexError:
            raise ValueError("it ends too early") from None
        except (CorruptPayload, *FAILURES) as error:
            raise ValueError(str(error)[:200] or type(error).__name__) from None
        if end < len(payload):
            raise ValueError(f"{len(payload) - end} bytes follow it")
        return value


def _read_boolean(data: bytes, position: int) -> tuple[bool, int]:
    byte = data[position]
    if byte > 1:
        raise ValueError(f"a boolean is {byte}")
    return byte == 1, position + 1


def _read_int(data: bytes, position: int) -> tuple[int, int]:
    number, position = read_long(data, position)
    if number not in _INT:
        raise ValueError(f"{number} has more than 32 bits")
    return number, position


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    number, position = read_long(data, position)
    if number not in _LONG:
        raise ValueError(f"{number} has more than 64 bits")
    return number, position


def _as_member(read: Read, union: Union, branch: Node) -> Read:
    """Wrap the values of a branch in a struct that names the branch."""
    if branch.kind == "null" or not has_members(union):
        return read
    values = [one for one in union.branches if one.kind != "null"]
    name = member_name(values.index(branch))

    def read_member(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read(data, position)
        return {name: value}, position

    return read_member


def _converted(read: Read, writer: Node, reader: Node) -> Read:
    """Convert values of a logical type to what Arrow takes; the writer's unit and scale count."""
    logical = reader.logical
    if logical is None:
        return read
    if logical.name == "decimal":
        return _decimals(read, writer if _is_decimal(writer) else reader)
    is_time = isinstance(reader, Primitive) and logical.name in LOGICAL
    if is_time and is_in_millis(writer if _is_time(writer) else reader):
        return _microseconds(read)
    return read


def _is_decimal(node: Node) -> bool:
    return node.logical is not None and node.logical.name == "decimal"


def _is_time(node: Node) -> bool:
    return node.logical is not None and node.logical.name in LOGICAL


def _microseconds(read_millis: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[int, int]:
        millis, position = read_millis(data, position)
        if abs(millis) > MILLIS_MAX:
            raise ValueError(f"{millis} milliseconds since 1970 are more than a TIMESTAMP holds")
        return millis * 1000, position

    return read


def _decimals(read_bytes: Read, node: Node) -> Read:
    assert node.logical is not None
    precision, scale = node.logical.precision, node.logical.scale

    def read(data: bytes, position: int) -> tuple[Decimal, int]:
        raw, position = read_bytes(data, position)
        unscaled = int.from_bytes(raw, "big", signed=True)
        if abs(unscaled) >= 10**precision:
            raise ValueError(f"a decimal has more than {precision} digits")
        return Decimal(unscaled).scaleb(-scale, _DIGITS), position

    return read


ROWS: Final = Shape(
    primitives=PLAIN | {"boolean": _read_boolean, "int": _read_int, "long": _read_long},
    fixed=read_fixed,
    branch=_as_member,
    convert=_converted,
)
