"""Writes values of a schema: compiled once into one function per type, then called per value.

Other libraries write 3.7 as the int 3, an int as a double although the union has a long, or a text
as an array of letters. Here values that would not be read back equal are rejected, and the message
names the field. A union prefers the branch of the value's own type to one that widens it: exact
numbers first, a record before a map, the record with the fewest missing fields.
"""

import datetime
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from fastavro.logical_writers import LOGICAL_WRITERS

from headrace.serdes.avro.defaults import is_default, tagged_default
from headrace.serdes.avro.json_writing import write_json_value
from headrace.serdes.avro.logical import converts
from headrace.serdes.avro.model import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    branch_name,
)
from headrace.serdes.avro.primitives import (
    BYTES,
    PRIMITIVE_WRITES,
    Write,
    write_number,
    write_string,
)
from headrace.serdes.avro.unfit import Unfit, refuse, shown
from headrace.serdes.varints import write_varint

LOGICAL_TYPES: Final[dict[str, type]] = {
    "date": datetime.date,
    "time-millis": datetime.time,
    "time-micros": datetime.time,
    "timestamp-millis": datetime.datetime,
    "timestamp-micros": datetime.datetime,
    "local-timestamp-millis": datetime.datetime,
    "local-timestamp-micros": datetime.datetime,
    "uuid": uuid.UUID,
    "decimal": Decimal,
}
BRANCH_MEMBER: Final = "-type"
"""Member that names the branch of a record in a union, as with fastavro."""

LISTS: Final = (list, tuple)
TEXTS: Final = (str, bytes, bytearray)


def write_of(root: Node, *, logical: bool) -> Write:
    """Compile a function that writes values of this type and raises `Unfit` for others."""
    return _Compiler(logical).compile(root)


class Default:
    """The encoded default of a field, computed when a record first lacks the field."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._written: bytes | None = None

    @property
    def bytes(self) -> "bytes":
        if self._written is None:
            self._written = default_payload(self._field)
        return self._written


def default_payload(field: Field) -> bytes:
    """Encode a field's default; raise `Unfit` if it is missing or invalid."""
    if not field.has_default:
        raise Unfit("it is missing and has no default")
    if not is_default(field.type, field.default):
        raise Unfit(f"the schema's default {field.default!r} does not fit its type")
    written = bytearray()
    write_json_value(field.type, tagged_default(field.type, field.default), written)
    return bytes(written)


class _Compiler:
    def __init__(self, logical: bool) -> None:
        self._logical = logical
        self._records: dict[int, Write] = {}

    def compile(self, node: Node) -> Write:
        write = self._plain(node)
        return _converting(node, write) if self._logical and converts(node) else write

    def _plain(self, node: Node) -> Write:
        match node:
            case Primitive():
                return PRIMITIVE_WRITES[node.kind]
            case Fixed():
                return _fixed(node)
            case Enum():
                return _enum(node)
            case Array():
                return _array(self.compile(node.items))
            case Map():
                return _map(self.compile(node.values))
            case Union():
                return self._union(node)
            case Record():
                return self._record(node)

    def _record(self, record: Record) -> Write:
        """Compile a record; its function is registered before its fields, which may be
        recursive."""
        if id(record) not in self._records:
            fields: list[tuple[str, Write, Default]] = []
            self._records[id(record)] = _record(record, fields)
            fields += [(f.name, self.compile(f.type), Default(f)) for f in record.fields]
        return self._records[id(record)]

    def _union(self, union: Union) -> Write:
        branches = [
            _Branch(index, node, self.compile(node)) for index, node in enumerate(union.branches)
        ]
        kinds = [branch.node.kind for branch in branches]
        if len(branches) == 2 and "null" in kinds:
            null = kinds.index("null")
            return _optional(bytes((null << 1,)), branches[1 - null])
        return _union(branches)


class _Branch:
    """A branch of a union, with the index written before its values."""

    def __init__(self, index: int, node: Node, write: Write) -> None:
        self.node = node
        self.name = branch_name(node)
        self._prefix = write_varint(index)
        self._write = write

    def write(self, value: Any, out: bytearray) -> None:
        out += self._prefix
        self._write(value, out)


def _record(record: Record, fields: list[tuple[str, Write, Default]]) -> Write:
    names = {field.name for field in record.fields} | {BRANCH_MEMBER}

    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, dict) and not isinstance(value, Mapping):
            refuse(value, f"the record {record.name.full}")
        found = 0
        name = ""
        try:
            for name, write_field, default in fields:  # The error names the field.
                part = value.get(name, MISSING)
                if part is MISSING:
                    out += default.bytes
                else:
                    found += 1
                    write_field(part, out)
        except Unfit as error:
            raise error.within(f".{name}") from None
        if len(value) != found and not value.keys() <= names:
            extra = ", ".join(map(str, value.keys() - names))
            raise Unfit(f"the record {record.name.full} has no field {extra}")

    return write


def _array(write_item: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, LISTS) and (
            not isinstance(value, Sequence) or isinstance(value, TEXTS)
        ):
            refuse(value, "an array")
        if value:
            write_number(len(value), out)
            position = 0
            try:
                for position, item in enumerate(value):  # noqa: B007
                    write_item(item, out)
            except Unfit as error:
                raise error.within(f"[{position}]") from None
        out.append(0)

    return write


def _map(write_part: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, Mapping):
            refuse(value, "a map")
        if value:
            write_number(len(value), out)
            name: Any = ""
            try:
                for name, part in value.items():
                    write_string(name, out)
                    write_part(part, out)
            except Unfit as error:
                raise error.within(f"[{name!r}]") from None
        out.append(0)

    return write


def _optional(null: bytes, other: _Branch) -> Write:
    """Compile a union of null and one type, the most frequent union."""
    branches = [_Branch(null[0] >> 1, Primitive("null"), PRIMITIVE_WRITES["null"]), other]

    def write(value: Any, out: bytearray) -> None:
        if value is None:
            out += null
        elif type(value) is tuple:
            _write_named(value, branches, out)
        else:
            other.write(value, out)

    return write


def _union(branches: list[_Branch]) -> Write:
    ranked = sorted(branches, key=lambda branch: _rank(branch.node))
    exact = [branch for branch in ranked if branch.node.kind not in ("float", "double")]

    def write(value: Any, out: bytearray) -> None:
        if type(value) is tuple:
            return _write_named(value, branches, out)
        failures: list[Unfit] = []
        begin = len(out)
        for branch in ranked if isinstance(value, float) else [*exact, *ranked]:
            try:
                return branch.write(value, out)
            except Unfit as failure:
                del out[begin:]
                failures.append(failure)
        # For a record, the invalid field is more helpful than the list of branches.
        deepest = max(failures, key=lambda failure: len(failure.path), default=None)
        if deepest is None or not deepest.path:
            refuse(value, f"any of {', '.join(branch.name for branch in branches)}")
        raise deepest

    return write


def _rank(node: Node) -> tuple[int, int]:
    """Return the preference among branches that a value fits; the lowest is taken."""
    match node:
        case Record():
            return 0, len(node.fields)
        case Map():
            return 1, 0
        case Primitive(kind="float"):
            return 1, 0  # A double loses nothing of a Python float.
    return 0, 0


def _write_named(value: tuple[Any, ...], branches: list[_Branch], out: bytearray) -> None:
    """Write a pair of a branch's name and a value, as with fastavro."""
    for branch in branches:
        if len(value) == 2 and branch.name == value[0]:
            return branch.write(value[1], out)
    names = ", ".join(branch.name for branch in branches)
    raise Unfit(f"{shown(value)} is not a pair of a branch ({names}) and its value")


def _fixed(fixed: Fixed) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, BYTES) or len(value) != fixed.size:
            refuse(value, f"the fixed {fixed.name.full} of {fixed.size} bytes")
        out += value

    return write


def _enum(enum: Enum) -> Write:
    numbers = {symbol: write_varint(number) for number, symbol in enumerate(enum.symbols)}

    def write(value: Any, out: bytearray) -> None:
        number = numbers.get(value) if isinstance(value, str) else None
        if number is None:
            refuse(value, f"the enum {enum.name.full} ({', '.join(enum.symbols)})")
        out += number

    return write


def _converting(node: Node, write_plain: Write) -> Write:
    """Convert dates, decimals and the like as fastavro does; encoded values pass unchanged."""
    assert node.logical is not None
    name = node.logical.name
    expected = LOGICAL_TYPES[name]
    convert = LOGICAL_WRITERS[f"{node.kind}-{name}"]
    form = {"precision": node.logical.precision, "scale": node.logical.scale}
    if isinstance(node, Fixed):
        form["size"] = node.size
    is_instant = name.startswith("timestamp-")

    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, expected):
            return write_plain(value, out)
        if is_instant and getattr(value, "tzinfo", None) is None:
            # It would be interpreted in this machine's time zone.
            raise Unfit(f"{shown(value)} has no time zone; give it one, such as datetime.UTC")
        try:
            plain = convert(value, form)
        except (ArithmeticError, ValueError) as error:
            raise Unfit(f"{shown(value)} is not a valid {name}: {error}") from error
        return write_plain(plain, out)

    return write
