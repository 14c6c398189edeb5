"""Whether a value fits a schema: compiled once into functions, one per type, then called per value.

fastavro writes 3.7 into an int as 3, a number that is too large as it is, and a text as an array of
letters. Here such values are refused, and the message names the field.
"""

import datetime
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final, NoReturn

from headrace.serdes.avro.defaults import INT_RANGE, LONG_RANGE
from headrace.serdes.avro.errors import UnfitValue
from headrace.serdes.avro.forms import converts
from headrace.serdes.avro.model import (
    MISSING,
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

Check = Callable[[Any], None]
CheckedField = tuple[str, type, Check, bool]
"""A name, the type whose values fit, the check of all others, whether there is a default."""

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
EXACT: Final[dict[str, type]] = {
    "boolean": bool,
    "bytes": bytes,
    "double": float,
    "float": float,
    "string": str,
}
"""Types whose values all fit, which spares a call for most fields."""

NOTHING: Final = type("NOTHING", (), {})
"""A type without values."""

LISTS: Final = (list, tuple)
TEXTS: Final = (str, bytes, bytearray)
BYTES: Final = (bytes, bytearray)

RECORD_HINT: Final = "-type"
"""With fastavro, a record in a union may say by this member which branch it is."""


class Unfit(Exception):
    """A value that does not fit, on its way out to where its whole path is known."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def as_error(self) -> UnfitValue:
        where = "".join(reversed(self.path)).lstrip(".")
        return UnfitValue(f"{where}: {self.reason}" if where else self.reason)


def check_of(root: Node, *, logical: bool) -> Check:
    """A function that raises `Unfit` for values that are none of this type."""
    return _Compiler(logical).check(root)


class _Compiler:
    def __init__(self, logical: bool) -> None:
        self._logical = logical
        self._records: dict[int, Check] = {}

    def check(self, node: Node) -> Check:
        plain = self._plain(node)
        if self._logical and converts(node) and node.logical is not None:
            return _logical_check(node.logical.name, plain)
        return plain

    def _plain(self, node: Node) -> Check:
        match node:
            case Primitive():
                return PRIMITIVE_CHECKS[node.kind]
            case Fixed():
                return _fixed_check(node)
            case Enum():
                return _enum_check(node)
            case Array():
                return _array_check(self.check(node.items))
            case Map():
                return _map_check(self.check(node.values))
            case Union():
                return self._union(node)
            case Record():
                return self._record(node)

    def _record(self, record: Record) -> Check:
        """A record may hold itself, so its check is known before those of its fields are."""
        if id(record) not in self._records:
            fields: list[CheckedField] = []
            self._records[id(record)] = _record_check(record, fields)
            fields += [
                (field.name, exact_type(field.type), self.check(field.type), field.has_default)
                for field in record.fields
            ]
        return self._records[id(record)]

    def _union(self, union: Union) -> Check:
        checks = {branch_name(branch): self.check(branch) for branch in union.branches}
        if len(checks) == 2 and "null" in checks:
            (other,) = (check for name, check in checks.items() if name != "null")
            return _optional_check(other, checks)
        return _union_check(checks)


def exact_type(node: Node) -> type:
    """The type of Python whose values fit without a look at them."""
    if isinstance(node, Union) and len(node.branches) == 2:
        first, second = node.branches
        node = second if first.kind == "null" else first if second.kind == "null" else node
    return EXACT.get(node.kind, NOTHING)


def _record_check(record: Record, fields: list[CheckedField]) -> Check:
    names = {field.name for field in record.fields} | {RECORD_HINT}

    def check(value: Any) -> None:
        if not isinstance(value, dict) and not isinstance(value, Mapping):
            refuse(value, f"the record {record.name.full}")
        found = 0
        for name, exact, check_field, has_default in fields:
            part = value.get(name, MISSING)
            if type(part) is exact:
                found += 1
            elif part is not MISSING:
                found += 1
                try:
                    check_field(part)
                except Unfit as error:
                    raise _within(f".{name}", error) from None
            elif not has_default:
                raise _within(f".{name}", Unfit("it is missing and has no default"))
        if len(value) != found and not value.keys() <= names:
            extra = ", ".join(map(str, value.keys() - names))
            raise Unfit(f"the record {record.name.full} has no field {extra}")

    return check


def _array_check(check_item: Check) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, LISTS) and (
            not isinstance(value, Sequence) or isinstance(value, TEXTS)
        ):
            refuse(value, "an array")
        for position, item in enumerate(value):
            try:
                check_item(item)
            except Unfit as error:
                raise _within(f"[{position}]", error) from None

    return check


def _map_check(check_part: Check) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, Mapping):
            refuse(value, "a map")
        for name, part in value.items():
            if not isinstance(name, str):
                raise Unfit(f"the key {name!r} is no text; keys of maps are")
            try:
                check_part(part)
            except Unfit as error:
                raise _within(f"[{name!r}]", error) from None

    return check


def _optional_check(other: Check, checks: dict[str, Check]) -> Check:
    """A type or null, which most unions are."""

    def check(value: Any) -> None:
        if value is None:
            return
        if type(value) is tuple:
            check_hinted(value, checks)
        else:
            other(value)

    return check


def _union_check(checks: dict[str, Check]) -> Check:
    def check(value: Any) -> None:
        if type(value) is tuple:
            return check_hinted(value, checks)
        reasons = []
        for check_branch in checks.values():
            try:
                return check_branch(value)
            except Unfit as error:
                reasons.append(error)
        if isinstance(value, Mapping) and reasons:
            # Of a record the field that is wrong says more than that no branch fits.
            raise max(reasons, key=lambda error: len(error.path))
        refuse(value, f"any of {', '.join(checks)}")

    return check


def check_hinted(value: tuple[Any, ...], checks: dict[str, Check]) -> None:
    """With fastavro, a pair says by name which branch of a union its second part is."""
    if len(value) != 2 or value[0] not in checks:
        raise Unfit(f"{shown(value)} is no pair of a branch ({', '.join(checks)}) and its value")
    checks[value[0]](value[1])


def _fixed_check(fixed: Fixed) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, bytes) or len(value) != fixed.size:
            refuse(value, f"the fixed {fixed.name.full} of {fixed.size} bytes")

    return check


def _enum_check(enum: Enum) -> Check:
    symbols = frozenset(enum.symbols)

    def check(value: Any) -> None:
        if not isinstance(value, str) or value not in symbols:
            refuse(value, f"the enum {enum.name.full} ({', '.join(enum.symbols)})")

    return check


def _logical_check(name: str, check_plain: Check) -> Check:
    expected = LOGICAL_TYPES[name]
    is_instant = name.startswith("timestamp-")

    def check(value: Any) -> None:
        if not isinstance(value, expected):
            check_plain(value)
        elif is_instant and getattr(value, "tzinfo", None) is None:
            # fastavro would take it for the time of wherever this machine stands.
            raise Unfit(f"{shown(value)} has no time zone; give it one, such as datetime.UTC")

    return check


def is_number(value: object, kind: type) -> bool:
    """To Python a bool is a number; to Avro it is none."""
    return isinstance(value, kind) and type(value) is not bool


def _check_null(value: Any) -> None:
    if value is not None:
        refuse(value, "null")


def _check_boolean(value: Any) -> None:
    if not isinstance(value, bool):
        refuse(value, "a boolean")


def _check_int(value: Any) -> None:
    if type(value) is not int and not is_number(value, Integral):
        refuse(value, "an int")
    if value not in INT_RANGE:
        refuse(value, "an int of 32 bits")


def _check_long(value: Any) -> None:
    if type(value) is not int and not is_number(value, Integral):
        refuse(value, "a long")
    if value not in LONG_RANGE:
        refuse(value, "a long of 64 bits")


def _check_real(value: Any) -> None:
    if type(value) is not float and not is_number(value, Real):
        refuse(value, "a number")


def _check_bytes(value: Any) -> None:
    if not isinstance(value, BYTES):
        refuse(value, "bytes")


def _check_string(value: Any) -> None:
    if not isinstance(value, str):
        refuse(value, "a string")


PRIMITIVE_CHECKS: Final[dict[str, Check]] = {
    "null": _check_null,
    "boolean": _check_boolean,
    "int": _check_int,
    "long": _check_long,
    "float": _check_real,
    "double": _check_real,
    "bytes": _check_bytes,
    "string": _check_string,
}


def _within(step: str, error: Unfit) -> Unfit:
    error.path.append(step)
    return error


def refuse(value: Any, expected: str) -> NoReturn:
    if value is None:
        raise Unfit(f"null is not {expected}; only a union with null takes it")
    raise Unfit(f"{shown(value)} is not {expected}")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
