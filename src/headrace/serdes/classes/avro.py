"""The model as an Avro schema, and an Avro schema as the model."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

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

_PRIMITIVES = {
    "null": Scalar.NULL,
    "boolean": Scalar.BOOLEAN,
    "string": Scalar.STRING,
    "bytes": Scalar.BYTES,
    "long": Scalar.LONG,
    "int": Scalar.INT,
    "double": Scalar.DOUBLE,
    "float": Scalar.FLOAT,
}
_LOGICAL = {
    (written["type"], written["logicalType"]): scalar
    for scalar, written in _WRITTEN.items()
    if isinstance(written, dict)
}


def write(shape: Shape) -> str:
    """An Avro schema: each name is defined where it is used first."""
    return msgspec.json.encode(_Writer(shape).type(shape.root, shape.root.name)).decode()


def read(text: str) -> Shape:
    """The model of an Avro schema, which must be a record."""
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Inexpressible(f"The Avro schema is no JSON: {error}") from None
    reader = _Reader()
    root = reader.type(schema, "", "")
    if not isinstance(root, Named) or not isinstance(reader.definitions[root.name], Record):
        raise Inexpressible("A class is made from a record; this Avro schema is none")
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
        """Names without a namespace are in that of the whole schema, as Avro has it."""
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
        """A default is one of the first option of its union, so that option goes first."""
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
        self._fixed: set[str] = set()

    def type(self, schema: Any, namespace: str, where: str) -> Type:
        if isinstance(schema, list):
            return union([self.type(option, namespace, where) for option in schema])
        if isinstance(schema, str):
            return self._reference(schema, namespace, where)
        if not isinstance(schema, dict):
            raise Inexpressible(f"{where}: {schema!r} is no Avro type")
        return self._complex(schema, namespace, where)

    def _reference(self, name: str, namespace: str, where: str) -> Type:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for known in (full, name):
            if known in self.definitions:
                return Named(known)
            if known in self._fixed:
                return Scalar.BYTES
        raise Inexpressible(f"{where}: the type {name} is not defined before it is used")

    def _complex(self, schema: dict[str, Any], namespace: str, where: str) -> Type:
        kind, logical = schema.get("type"), schema.get("logicalType")
        if logical == "decimal" and "precision" in schema:
            return DecimalOf(schema["precision"], schema.get("scale", 0))
        if isinstance(kind, str) and (kind, logical) in _LOGICAL:
            return _LOGICAL[kind, logical]
        match kind:
            case "array":
                return ListOf(self.type(schema.get("items"), namespace, where))
            case "map":
                return MapOf(self.type(schema.get("values"), namespace, where))
            case "record" | "error":
                return self._record(schema, namespace)
            case "enum":
                return self._enumeration(schema, namespace)
            case "fixed":
                # A class has bytes of any length; the name is kept for later references.
                self._fixed.add(_full_name(schema, namespace)[0])
                return Scalar.BYTES
            case _:
                return self.type(kind, namespace, where)

    def _record(self, schema: dict[str, Any], namespace: str) -> Type:
        name, inner = _full_name(schema, namespace)
        self.definitions[name] = Record(name=name, fields=())
        self.definitions[name] = Record(
            name=name,
            fields=tuple(self._field(field, inner, name) for field in schema.get("fields", ())),
            doc=schema.get("doc"),
            aliases=tuple(schema.get("aliases", ())),
        )
        return Named(name)

    def _enumeration(self, schema: dict[str, Any], namespace: str) -> Type:
        name, _ = _full_name(schema, namespace)
        members = tuple((symbol, symbol) for symbol in schema.get("symbols", ()))
        self.definitions[name] = Enumeration(name=name, members=members, doc=schema.get("doc"))
        return Named(name)

    def _field(self, schema: dict[str, Any], namespace: str, record: str) -> Field:
        where = f"{record}.{schema.get('name')}"
        type_ = self.type(schema.get("type"), namespace, where)
        default = MISSING
        if "default" in schema:
            try:
                default = self._default(schema["default"], type_, where)
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
                raise Inexpressible(
                    f"{where}: the default {schema['default']!r} does not fit its type"
                ) from None
        return Field(
            name=schema["name"],
            type=type_,
            default=default,
            doc=schema.get("doc"),
            aliases=tuple(schema.get("aliases", ())),
        )

    def _default(self, value: Any, type_: Type, where: str) -> Any:
        match type_:
            case Scalar():
                return _READ_DEFAULTS.get(type_, lambda each: each)(value)
            case DecimalOf(_, scale):
                unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
                return Decimal(unscaled).scaleb(-scale)
            case ListOf(item):
                return [self._default(each, item, where) for each in value]
            case MapOf(inner):
                return {key: self._default(each, inner, where) for key, each in value.items()}
            case UnionOf(options):
                return self._default(value, options[0], where)
            case Named(name) if isinstance(self.definitions[name], Record):
                definition = self.definitions[name]
                assert isinstance(definition, Record)
                types = {field.name: field.type for field in definition.fields}
                return {key: self._default(each, types[key], where) for key, each in value.items()}
            case _:
                return value


def _full_name(schema: dict[str, Any], namespace: str) -> tuple[str, str]:
    """The name with its namespace, and the namespace that holds within."""
    name = schema.get("name")
    if not isinstance(name, str):
        raise Inexpressible("An Avro record or enum has no name")
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = schema.get("namespace", namespace)
    return (f"{inner}.{name}" if inner else name), inner


def _enumeration(name: str, symbols: list[Any], doc: str | None, where: str) -> dict[str, Any]:
    for symbol in symbols:
        if not isinstance(symbol, str) or not _NAME.fullmatch(symbol):
            raise Inexpressible(
                f"{where}: {symbol!r} is no symbol of an Avro enum; those are names of letters, "
                "digits and underscores"
            )
    return {"type": "enum", "name": name, **({"doc": doc} if doc else {}), "symbols": symbols}


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise Inexpressible(
            f"{where}: '{name}' is no name in Avro; give it one with Wire(name=...)"
        )


def _decimal(precision: int | None, scale: int, where: str) -> dict[str, Any]:
    if precision is None:
        raise Inexpressible(
            f"{where}: Avro must know the digits of a decimal; say "
            "Annotated[Decimal, Wire(precision=..., scale=...)]"
        )
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _decimal_bytes(value: Decimal, scale: int) -> bytes:
    unscaled = int(value.scaleb(scale))
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


def _plain(value: Any, scalar: Scalar, where: str) -> Any:
    """A default as Avro's JSON has it."""
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


def _time(micros: int) -> time:
    return (datetime.min + timedelta(microseconds=micros)).time()


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


_READ_DEFAULTS: dict[Scalar, Callable[[Any], Any]] = {
    Scalar.BYTES: lambda value: value.encode("latin-1"),
    Scalar.DOUBLE: float,
    Scalar.FLOAT: float,
    Scalar.DATE: lambda value: _EPOCH.date() + timedelta(days=value),
    Scalar.TIME: _time,
    Scalar.TIME_MILLIS: lambda value: _time(value * 1000),
    Scalar.TIMESTAMP: _moment,
    Scalar.TIMESTAMP_MILLIS: lambda value: _moment(value * 1000),
    Scalar.LOCAL_TIMESTAMP: lambda value: _moment(value).replace(tzinfo=None),
    Scalar.UUID: UUID,
}
