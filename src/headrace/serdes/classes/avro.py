"""Converts Avro schemas to and from the model."""

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from headrace.serdes.avro import model
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.printing import qualified
from headrace.serdes.avro.projection import VALUES, Default, projection
from headrace.serdes.classes.model import (
    INTEGERS,
    MISSING,
    PYTHON_TYPES,
    SMALL_INTEGERS,
    Choice,
    DecimalOf,
    Enumeration,
    Field,
    Inexpressible,
    ListOf,
    MapOf,
    Named,
    Record,
    Scalar,
    Shape,
    Type,
    UnionOf,
    camel,
    union,
)
from headrace.serdes.payload_errors import CorruptPayload
from headrace.serdes.schemas import InvalidSchema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_WRITTEN: dict[Scalar, Any] = {
    Scalar.NULL: "null",
    Scalar.BOOLEAN: "boolean",
    Scalar.STRING: "string",
    Scalar.BYTES: "bytes",
    Scalar.DOUBLE: "double",
    Scalar.FLOAT: "float",
    Scalar.DATE: {"type": "int", "logicalType": "date"},
    Scalar.TIME: {"type": "long", "logicalType": "time-micros"},
    Scalar.TIME_MILLIS: {"type": "int", "logicalType": "time-millis"},
    Scalar.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    Scalar.TIMESTAMP_MILLIS: {"type": "long", "logicalType": "timestamp-millis"},
    Scalar.LOCAL_TIMESTAMP: {"type": "long", "logicalType": "local-timestamp-micros"},
    Scalar.UUID: {"type": "string", "logicalType": "uuid"},
} | {scalar: "int" if scalar in SMALL_INTEGERS else "long" for scalar in INTEGERS}

_READ: dict[str, Scalar] = {
    "null": Scalar.NULL,
    "boolean": Scalar.BOOLEAN,
    "string": Scalar.STRING,
    "bytes": Scalar.BYTES,
    "long": Scalar.LONG,
    "int": Scalar.INT,
    "double": Scalar.DOUBLE,
    "float": Scalar.FLOAT,
} | {
    written["logicalType"]: scalar
    for scalar, written in _WRITTEN.items()
    if isinstance(written, dict)
}


def write(shape: Shape) -> str:
    """Format an Avro schema; each name is defined at its first use."""
    return msgspec.json.encode(_Writer(shape).type(shape.root, shape.root.name)).decode()


def read(text: str) -> Shape:
    """Return the model of an Avro schema, which must be a record."""
    try:
        schema = parse(text, lenient=True)
    except InvalidSchema as error:
        raise Inexpressible(f"The Avro schema is invalid: {error}") from None
    reader = _Reader()
    root = reader.type(schema.root)
    if not isinstance(root, Named) or not isinstance(schema.root, model.Record):
        raise Inexpressible("A class is made from a record; this Avro schema is not a record")
    return Shape(root, reader.definitions)


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._namespace = shape.root.name.rpartition(".")[0]
        self._defined: set[str] = set()

    def type(self, type_: Type, where: str) -> Any:
        match type_:
            case Scalar():
                return self._scalar(type_, where)
            case DecimalOf(precision, scale):
                return _decimal(precision, scale, where)
            case ListOf(item):
                return {"type": "array", "items": self.type(item, where)}
            case MapOf(value, key):
                if key is not Scalar.STRING:
                    raise Inexpressible(f"{where}: keys of an Avro map are strings")
                return {"type": "map", "values": self.type(value, where)}
            case UnionOf(options):
                return [self.type(option, where) for option in options]
            case Choice(values):
                return _enumeration(self._full(camel(*where.split("."))), [*values], None, where)
            case Named(name):
                return self._named(name, where)

    def _scalar(self, scalar: Scalar, where: str) -> Any:
        if scalar not in _WRITTEN:
            raise Inexpressible(f"{where}: {PYTHON_TYPES[scalar]} has no type in Avro")
        return _WRITTEN[scalar]

    def _named(self, name: str, where: str) -> Any:
        full = self._full(name)
        if name in self._defined:
            return full
        self._defined.add(name)
        definition = self._shape.definitions[name]
        if isinstance(definition, Enumeration):
            symbols = [
                value if isinstance(value, str) else key for key, value in definition.members
            ]
            return _enumeration(full, [*symbols], definition.doc, where)
        _check_name(name.rpartition(".")[2], where)
        return {
            "type": "record",
            "name": full,
            **({"doc": definition.doc} if definition.doc else {}),
            **({"aliases": list(definition.aliases)} if definition.aliases else {}),
            "fields": [self._field(name, field) for field in definition.fields],
        }

    def _full(self, name: str) -> str:
        """Return a full name: names without a namespace are in the namespace of the schema."""
        return f"{self._namespace}.{name}" if self._namespace and "." not in name else name

    def _field(self, record: str, field: Field) -> dict[str, Any]:
        where = f"{record.rpartition('.')[2]}.{field.name}"
        _check_name(field.name, where)
        type_ = field.type
        if field.default is not MISSING and isinstance(type_, UnionOf):
            type_ = self._with_first(type_, field.default)
        written = {"name": field.name, "type": self.type(type_, where)}
        if field.default is not MISSING:
            written["default"] = self._default(field.default, type_, where)
        if field.doc:
            written["doc"] = field.doc
        if field.aliases:
            written["aliases"] = list(field.aliases)
        return written

    def _with_first(self, type_: UnionOf, default: Any) -> UnionOf:
        """Move the option of the default to the front, as Avro requires."""
        fitting = [option for option in type_.options if self._fits(default, option)]
        rest = [option for option in type_.options if option not in fitting[:1]]
        return UnionOf((*fitting[:1], *rest))

    def _fits(self, value: Any, type_: Type) -> bool:
        match type_:
            case Scalar():
                name = PYTHON_TYPES[type_]
                return type(value).__name__ == ("NoneType" if name == "None" else name)
            case DecimalOf():
                return isinstance(value, Decimal)
            case ListOf():
                return isinstance(value, list)
            case Choice(values):
                return value in values
            case Named(name):
                definition = self._shape.definitions[name]
                if isinstance(definition, Enumeration):
                    return value in [each for pair in definition.members for each in pair]
                return isinstance(value, dict)
            case _:
                return isinstance(value, dict)

    def _default(self, value: Any, type_: Type, where: str) -> Any:
        match type_:
            case Scalar():
                return _plain(value, type_, where)
            case DecimalOf(_, scale):
                return _decimal_bytes(value, scale).decode("latin-1")
            case ListOf(item):
                return [self._default(each, item, where) for each in value]
            case MapOf(inner):
                return {key: self._default(each, inner, where) for key, each in value.items()}
            case UnionOf(options):
                return self._default(value, options[0], where)
            case Choice():
                return value
            case Named(name):
                return self._named_default(value, name, where)

    def _named_default(self, value: Any, name: str, where: str) -> Any:
        definition = self._shape.definitions[name]
        if isinstance(definition, Enumeration):
            return next(
                (
                    key
                    for key, each in definition.members
                    if each == value and not isinstance(each, str)
                ),
                value,
            )
        types = {field.name: field.type for field in definition.fields}
        return {key: self._default(each, types[key], where) for key, each in value.items()}


class _Reader:
    def __init__(self) -> None:
        self.definitions: dict[str, Record | Enumeration] = {}

    def type(self, node: model.Node) -> Type:
        logical = node.logical
        if logical is not None and logical.name == "decimal":
            return DecimalOf(logical.precision, logical.scale)
        match node:
            case model.Primitive():
                return _READ.get(logical.name if logical else "", _READ[node.kind])
            case model.Array():
                return ListOf(self.type(node.items))
            case model.Map():
                return MapOf(self.type(node.values))
            case model.Union():
                return union(list(map(self.type, node.branches)))
            case model.Fixed():
                return Scalar.BYTES  # A class has bytes of any length.
        if node.name.full not in self.definitions:
            self._define(node)
        return Named(node.name.full)

    def _define(self, node: model.Record | model.Enum) -> None:
        name = node.name.full
        if isinstance(node, model.Enum):
            members = tuple((symbol, symbol) for symbol in node.symbols)
            self.definitions[name] = Enumeration(name=name, members=members, doc=node.doc)
            return
        self.definitions[name] = Record(name=name, fields=())  # It may contain itself.
        self.definitions[name] = Record(
            name=name,
            fields=tuple(self._field(field, name) for field in node.fields),
            doc=node.doc,
            aliases=tuple(qualified(alias, node.name.namespace) for alias in node.aliases),
        )

    def _field(self, field: model.Field, record: str) -> Field:
        type_ = self.type(field.type)
        default = MISSING
        if field.has_default:
            try:
                default = Default(field, projection(field.type, field.type, VALUES))()
            except (CorruptPayload, ArithmeticError, ValueError):
                raise Inexpressible(
                    f"{record}.{field.name}: the default {field.default!r} does not fit its type"
                ) from None
        return Field(
            name=field.name, type=type_, default=default, doc=field.doc, aliases=field.aliases
        )


def _enumeration(name: str, symbols: list[Any], doc: str | None, where: str) -> dict[str, Any]:
    for symbol in symbols:
        if not isinstance(symbol, str) or not _NAME.fullmatch(symbol):
            raise Inexpressible(
                f"{where}: {symbol!r} is not a symbol of an Avro enum, which has letters, "
                "digits and underscores"
            )
    return {"type": "enum", "name": name, **({"doc": doc} if doc else {}), "symbols": symbols}


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise Inexpressible(
            f"{where}: '{name}' is not a name in Avro; give it one with Wire(name=...)"
        )


def _decimal(precision: int | None, scale: int, where: str) -> dict[str, Any]:
    if precision is None:
        raise Inexpressible(
            f"{where}: Avro needs the digits of a decimal; write "
            "Annotated[Decimal, Wire(precision=..., scale=...)]"
        )
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _decimal_bytes(value: Decimal, scale: int) -> bytes:
    unscaled = int(value.scaleb(scale))
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


def _plain(value: Any, scalar: Scalar, where: str) -> Any:
    """Convert a default to Avro's JSON."""
    match value:
        case bytes():
            return value.decode("latin-1")
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            micros = (aware - _EPOCH) // timedelta(microseconds=1)
            return micros // 1000 if scalar is Scalar.TIMESTAMP_MILLIS else micros
        case date():
            return (value - _EPOCH.date()).days
        case time():
            micros = (value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000
            micros += value.microsecond
            return micros // 1000 if scalar is Scalar.TIME_MILLIS else micros
        case UUID():
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise Inexpressible(f"{where}: the default {value!r} does not fit its type")
