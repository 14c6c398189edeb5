"""The model of records and fields that classes and schemas of all types share.

A class or a schema is first read into this model; schema text or Python source is written from it.
So each kind needs one reader and one writer.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from headrace.errors import HeadraceError


class Inexpressible(HeadraceError):
    """A schema type or a class cannot express something; the message has the place and a remedy."""


class _Missing(Enum):
    MISSING = "missing"


MISSING = _Missing.MISSING
"""Marks a field without a default, since `None` is a valid default."""


class Scalar(Enum):
    """A scalar type; the values are the names for `Wire(kind=...)`."""

    NULL = "null"
    ANY = "any"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    LONG = "int64"
    INT = "int32"
    DOUBLE = "float64"
    FLOAT = "float32"
    DATE = "date"
    TIME = "time-micros"
    TIME_MILLIS = "time-millis"
    TIMESTAMP = "timestamp-micros"
    TIMESTAMP_MILLIS = "timestamp-millis"
    LOCAL_TIMESTAMP = "local-timestamp-micros"
    DURATION = "duration"
    UUID = "uuid"
    UINT32 = "uint32"
    UINT64 = "uint64"
    SINT32 = "sint32"
    SINT64 = "sint64"
    FIXED32 = "fixed32"
    FIXED64 = "fixed64"
    SFIXED32 = "sfixed32"
    SFIXED64 = "sfixed64"


PYTHON_TYPES: dict[Scalar, str] = {
    Scalar.NULL: "None",
    Scalar.ANY: "Any",
    Scalar.BOOLEAN: "bool",
    Scalar.STRING: "str",
    Scalar.BYTES: "bytes",
    Scalar.DOUBLE: "float",
    Scalar.FLOAT: "float",
    Scalar.DATE: "date",
    Scalar.TIME: "time",
    Scalar.TIME_MILLIS: "time",
    Scalar.TIMESTAMP: "datetime",
    Scalar.TIMESTAMP_MILLIS: "datetime",
    Scalar.LOCAL_TIMESTAMP: "datetime",
    Scalar.DURATION: "timedelta",
    Scalar.UUID: "UUID",
} | dict.fromkeys(
    (Scalar.LONG, Scalar.INT, Scalar.UINT32, Scalar.UINT64, Scalar.SINT32, Scalar.SINT64), "int"
)
PYTHON_TYPES |= dict.fromkeys(
    (Scalar.FIXED32, Scalar.FIXED64, Scalar.SFIXED32, Scalar.SFIXED64), "int"
)

SMALL_INTEGERS = frozenset({Scalar.INT, Scalar.SINT32, Scalar.SFIXED32})
INTEGERS = frozenset(scalar for scalar, name in PYTHON_TYPES.items() if name == "int")


@dataclass(frozen=True, slots=True)
class DecimalOf:
    """A decimal number; Avro requires its precision and scale."""

    precision: int | None = None
    scale: int = 0


@dataclass(frozen=True, slots=True)
class ListOf:
    item: "Type"


@dataclass(frozen=True, slots=True)
class MapOf:
    value: "Type"
    key: Scalar = Scalar.STRING


@dataclass(frozen=True, slots=True)
class UnionOf:
    options: tuple["Type", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values without a type of their own: `Literal`."""

    values: tuple[str | int | bool, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A reference to a record or an enumeration by name, which allows recursion."""

    name: str


Type: TypeAlias = Scalar | DecimalOf | ListOf | MapOf | UnionOf | Choice | Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field by its name in data. Defaults are plain: enumerations by value, records as dicts."""

    name: str
    type: Type
    default: Any = MISSING
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    number: int | None = None
    oneof: str | None = None
    dumped: str | None = field(default=None, compare=False)
    """Name in the dict that the class's library makes of an object, if it differs."""
    loaded: str | None = field(default=None, compare=False)
    """Name in the dict from which the library makes an object, if it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    name: str
    fields: tuple[Field, ...]
    doc: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """Members by name and value. Data contain the value if it is a string, or the name."""

    name: str
    members: tuple[tuple[str, str | int], ...]
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """A type and the definitions of all its names."""

    root: Named
    definitions: dict[str, Record | Enumeration] = field(default_factory=dict)

    def record(self, name: str) -> Record:
        found = self.definitions[name]
        assert isinstance(found, Record)
        return found


def union(options: list[Type]) -> Type:
    """Return a flat union without duplicates; a single option is returned as is."""
    flat: dict[Type, None] = {}
    for option in options:
        for each in option.options if isinstance(option, UnionOf) else (option,):
            flat[each] = None
    return next(iter(flat)) if len(flat) == 1 else UnionOf(tuple(flat))


def without_null(type_: Type) -> Type | None:
    """Return a nullable type without null; `None` if the type is not nullable."""
    if not isinstance(type_, UnionOf) or Scalar.NULL not in type_.options:
        return None
    rest = [option for option in type_.options if option is not Scalar.NULL]
    return rest[0] if len(rest) == 1 else UnionOf(tuple(rest))


def names_in(type_: Type) -> list[str]:
    """Return the names that a type uses, in order."""
    match type_:
        case Named(name):
            return [name]
        case ListOf(inner) | MapOf(inner):
            return names_in(inner)
        case UnionOf(options):
            return [name for option in options for name in names_in(option)]
        case _:
            return []


def camel(*words: str) -> str:
    """Join names of fields to a type's name: `order`, `line_items` become `OrderLineItems`."""
    parts = [part for word in words for part in _parts(word)]
    return "".join(part[0].upper() + part[1:] for part in parts) or "Value"


def _parts(word: str) -> list[str]:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in word)
    return kept.split()
