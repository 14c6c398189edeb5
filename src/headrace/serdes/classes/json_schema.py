"""Converts JSON Schemas to and from the model.

Objects are closed (`additionalProperties: false`): a compatible change may add a property to a
closed model, but not to an open one, whose data may contain anything under that name. The schemas
of Pydantic and msgspec do not describe the written data (decision 31).
"""

import base64
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from headrace.serdes.classes.model import (
    INTEGERS,
    MISSING,
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
from headrace.serdes.json_schema.drafts import DEFAULT_DRAFT
from headrace.serdes.json_schema.parsing import parse
from headrace.serdes.json_schema.references import Documents, Place, references_of
from headrace.serdes.schemas import Dependency

DEPTH_MAX = 60
"""Limit of nested schemas, so that they cannot exhaust the stack."""

_WRITTEN: dict[Scalar, dict[str, Any]] = {
    Scalar.NULL: {"type": "null"},
    Scalar.ANY: {},
    Scalar.BOOLEAN: {"type": "boolean"},
    Scalar.STRING: {"type": "string"},
    Scalar.BYTES: {"type": "string", "contentEncoding": "base64"},
    Scalar.DOUBLE: {"type": "number"},
    Scalar.FLOAT: {"type": "number", "format": "float"},
    Scalar.DATE: {"type": "string", "format": "date"},
    # JSON Schema's `time` requires a zone, which times of day in Python rarely have.
    Scalar.TIME: {"type": "string", "format": "partial-time"},
    Scalar.TIME_MILLIS: {"type": "string", "format": "partial-time"},
    Scalar.TIMESTAMP: {"type": "string", "format": "date-time"},
    Scalar.TIMESTAMP_MILLIS: {"type": "string", "format": "date-time"},
    Scalar.LOCAL_TIMESTAMP: {"type": "string", "format": "date-time"},
    Scalar.DURATION: {"type": "string", "format": "duration"},
    Scalar.UUID: {"type": "string", "format": "uuid"},
} | {
    scalar: {"type": "integer", **({"format": "int32"} if scalar in SMALL_INTEGERS else {})}
    for scalar in INTEGERS
}
_DECIMAL = {"type": "string", "format": "decimal"}

_SIMPLE = {"null": Scalar.NULL, "boolean": Scalar.BOOLEAN}
_FORMATS = {
    ("string", "date"): Scalar.DATE,
    ("string", "time"): Scalar.TIME,
    ("string", "partial-time"): Scalar.TIME,
    ("string", "date-time"): Scalar.TIMESTAMP,
    ("string", "duration"): Scalar.DURATION,
    ("string", "uuid"): Scalar.UUID,
    ("integer", "int32"): Scalar.INT,
    ("number", "float"): Scalar.FLOAT,
}
_DEFAULT_SCALARS = {"string": Scalar.STRING, "integer": Scalar.LONG, "number": Scalar.DOUBLE}


def write(shape: Shape) -> str:
    """Format a JSON Schema of draft 7, the default draft of readers."""
    writer = _Writer(shape)
    root = writer.definition(shape.root.name)
    others = {
        name: writer.definition(name) for name in shape.definitions if name != shape.root.name
    }
    schema = {"$schema": DEFAULT_DRAFT.url, **root}
    if others:
        schema["definitions"] = others
    return msgspec.json.encode(schema).decode()


def read(text: str, dependencies: Sequence[Dependency] = ()) -> Shape:
    """Return the model of a JSON Schema, which must describe an object."""
    schema = parse(text, dependencies)
    reader = _Reader(schema.documents)
    root = reader.type(schema.documents.root, "Record")
    if not isinstance(root, Named) or not isinstance(reader.definitions[root.name], Record):
        raise Inexpressible(
            "A class is made from an object with properties; this JSON Schema has none"
        )
    return Shape(root, reader.definitions)


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def definition(self, name: str) -> dict[str, Any]:
        definition = self._shape.definitions[name]
        about = {"title": name}
        if definition.doc:
            about["description"] = definition.doc
        if isinstance(definition, Enumeration):
            return about | _values([value for _, value in definition.members])
        required = [field.name for field in definition.fields if field.default is MISSING]
        return {
            **about,
            "type": "object",
            "properties": {field.name: self._field(name, field) for field in definition.fields},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def _field(self, record: str, field: Field) -> dict[str, Any]:
        where = f"{record}.{field.name}"
        schema = self.type(field.type, where)
        more: dict[str, Any] = {}
        if field.doc:
            more["description"] = field.doc
        if field.default is not MISSING:
            more["default"] = _plain(field.default, where)
        if more and "$ref" in schema:
            # Before draft 2019-09 a reference hides its siblings.
            return {"allOf": [schema], **more}
        return {**schema, **more}

    def type(self, type_: Type, where: str) -> dict[str, Any]:
        match type_:
            case Scalar():
                return _WRITTEN[type_]
            case DecimalOf():
                return _DECIMAL
            case ListOf(item):
                return {"type": "array", "items": self.type(item, where)}
            case MapOf(value, key):
                if key is not Scalar.STRING:
                    raise Inexpressible(f"{where}: keys of a JSON object are strings")
                return {"type": "object", "additionalProperties": self.type(value, where)}
            case UnionOf(options):
                return {"anyOf": [self.type(option, where) for option in options]}
            case Choice(values):
                return _values(list(values))
            case Named(name):
                is_root = name == self._shape.root.name
                return {"$ref": "#" if is_root else f"#/definitions/{_escaped(name)}"}


class _Reader:
    def __init__(self, documents: Documents) -> None:
        self.definitions: dict[str, Record | Enumeration] = {}
        self._documents = documents
        self._names: dict[int, str] = {}
        self._derived: dict[tuple[int, str], dict[str, Any]] = {}
        self._running: set[int] = set()

    def type(self, place: Place, name: str) -> Type:
        """Return the type of a schema; `name` replaces a missing title."""
        schema = place.schema
        if isinstance(schema, bool):
            return Scalar.ANY
        if id(schema) in self._running:
            return self._recursion(schema)
        if len(self._running) > DEPTH_MAX:
            raise Inexpressible(f"{name}: the schema is more than {DEPTH_MAX} levels deep")
        self._running.add(id(schema))
        found = self._type(place, schema, name)
        self._running.discard(id(schema))
        return found

    def _recursion(self, schema: dict[str, Any]) -> Type:
        """Return the named type of a recursive object; other recursions have no type."""
        derived = [each for (key, _), each in self._derived.items() if key == id(schema)]
        for each in (schema, *derived):
            if self._names.get(id(each)) in self.definitions:
                return Named(self._names[id(each)])
        return Scalar.ANY

    def _kept(self, schema: dict[str, Any], name: str, made: dict[str, Any]) -> dict[str, Any]:
        """Keep a derived schema, since schemas are identified by identity."""
        return self._derived.setdefault((id(schema), name), made)

    def _type(self, place: Place, schema: dict[str, Any], name: str) -> Type:
        references = references_of(schema)
        if references:
            target = self._documents.resolve(references[0][1], place.base)
            return self.type(target, _last(references[0][1]) or name)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema and "properties" not in schema:
                options = schema[keyword]
                return union(
                    [
                        self.type(place.inner(each), _numbered(name, at))
                        for at, each in _all(options)
                    ]
                )
        if "allOf" in schema:
            return self._product(place, schema, name)
        return self._simple(place, schema, name)

    def _simple(self, place: Place, schema: dict[str, Any], name: str) -> Type:
        if "enum" in schema or "const" in schema:
            return self._choice(schema, schema.get("enum", [schema.get("const")]), name)
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            kinds = [self._kept(schema, each, {**schema, "type": each}) for each in kind]
            return union([self.type(place.inner(each), name) for each in kinds])
        match kind:
            case "object":
                return self._object(place, schema, name)
            case "array":
                items = schema.get("items", True)
                if not isinstance(items, bool | dict):
                    return ListOf(Scalar.ANY)
                return ListOf(self.type(place.inner(items), name))
            case None:
                return Scalar.ANY
            case _:
                return _scalar(schema, kind)

    def _choice(self, schema: dict[str, Any], values: list[Any], name: str) -> Type:
        kinds = [value for value in values if value is not None]
        if not all(isinstance(value, str | int) for value in kinds):
            return Scalar.ANY
        nulls: list[Type] = [Scalar.NULL] if len(kinds) < len(values) else []
        is_enumeration = "title" in schema and len({type(value) for value in kinds}) == 1
        if not is_enumeration or isinstance(kinds[0], bool):
            return union([*nulls, Choice(tuple(kinds))] if kinds else nulls)
        title = self._name(schema, name)
        members = tuple((_member(value), value) for value in kinds)
        self.definitions[title] = Enumeration(
            name=title, members=members, doc=schema.get("description")
        )
        return union([*nulls, Named(title)])

    def _object(self, place: Place, schema: dict[str, Any], name: str) -> Type:
        if not schema.get("properties"):
            rest = schema.get("additionalProperties", True)
            if rest is not False:
                return MapOf(self.type(place.inner(rest), name))
        if id(schema) in self._names:
            return Named(self._names[id(schema)])
        title = self._name(schema, name)
        self._names[id(schema)] = title
        self.definitions[title] = Record(name=title, fields=())
        self.definitions[title] = Record(
            name=title,
            fields=self._fields(place, schema, title),
            doc=schema.get("description"),
        )
        return Named(title)

    def _name(self, schema: dict[str, Any], name: str) -> str:
        """Return the title of a schema, with a number if it is taken."""
        if id(schema) in self._names:
            return self._names[id(schema)]
        wanted = schema.get("title") or name
        title, count = wanted, 2
        while title in self.definitions:
            title, count = f"{wanted}{count}", count + 1
        self._names[id(schema)] = title
        return title

    def _fields(self, place: Place, schema: dict[str, Any], title: str) -> tuple[Field, ...]:
        required = schema.get("required", ())
        return tuple(
            self._field(place.inner(inner), name, title, is_required=name in required)
            for name, inner in schema.get("properties", {}).items()
        )

    def _field(self, place: Place, name: str, record: str, *, is_required: bool) -> Field:
        type_ = self.type(place, camel(record.rpartition(".")[2], name))
        schema = place.schema if isinstance(place.schema, dict) else {}
        try:
            default = self._default(schema.get("default", MISSING), type_)
        except (ArithmeticError, AttributeError, TypeError, ValueError):
            raise Inexpressible(
                f"{record}.{name}: the default {schema['default']!r} does not fit its type"
            ) from None
        if default is MISSING and not is_required:
            # The property may be absent, so the class needs a default.
            default, type_ = None, union([type_, Scalar.NULL])
        # The description of a nested object becomes its own docstring.
        own = isinstance(type_, Named) and "allOf" not in schema
        return Field(
            name=name,
            type=type_,
            default=default,
            doc=None if own else schema.get("description"),
        )

    def _default(self, value: Any, type_: Type) -> Any:
        if value is MISSING:
            return MISSING
        match type_:
            case Scalar() if type_ in _READ_DEFAULTS:
                return _READ_DEFAULTS[type_](value)
            case DecimalOf():
                return Decimal(value)
            case ListOf(item):
                return [self._default(each, item) for each in value]
            case MapOf(inner):
                return {key: self._default(each, inner) for key, each in value.items()}
            case UnionOf(options) if value is not None:
                rest = [option for option in options if option is not Scalar.NULL]
                return self._default(value, rest[0]) if len(rest) == 1 else value
            case Named(name) if isinstance(value, dict):
                definition = self.definitions[name]
                assert isinstance(definition, Record)
                types = {field.name: field.type for field in definition.fields}
                return {
                    key: self._default(each, types.get(key, Scalar.ANY))
                    for key, each in value.items()
                }
            case _:
                return value

    def _product(self, place: Place, schema: dict[str, Any], name: str) -> Type:
        """Merge the parts of an `allOf` if all are objects; other combinations become Any."""
        parts = schema["allOf"]
        if len(parts) == 1 and not {"properties", "type", "enum"} & schema.keys():
            return self.type(place.inner(parts[0]), name)
        types = [self.type(place.inner(part), _numbered(name, at)) for at, part in _all(parts)]
        if "properties" in schema:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            types.append(self.type(place.inner(self._kept(schema, "allOf", rest)), name))
        records = [self.definitions.get(each.name) for each in types if isinstance(each, Named)]
        if len(records) != len(types) or not all(isinstance(each, Record) for each in records):
            return Scalar.ANY
        fields = {
            field.name: field
            for record in records
            if isinstance(record, Record)
            for field in record.fields
        }
        title = self._name(schema, name)
        self.definitions[title] = Record(
            name=title, fields=tuple(fields.values()), doc=schema.get("description")
        )
        return Named(title)


def _scalar(schema: dict[str, Any], kind: str) -> Type:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if (kind, schema.get("format")) == ("string", "decimal"):
        return DecimalOf()
    if schema.get("contentEncoding") == "base64":
        return Scalar.BYTES
    return _FORMATS.get((kind, schema.get("format", "")), _DEFAULT_SCALARS[kind])


def _values(values: list[Any]) -> dict[str, Any]:
    kinds = {type(value) for value in values}
    names = {str: "string", int: "integer", bool: "boolean"}
    if len(kinds) == 1:
        return {"type": names[kinds.pop()], "enum": values}
    return {"enum": values}


def _plain(value: Any, where: str) -> Any:
    """Convert a default to JSON."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time() | timedelta() | UUID() | Decimal():
            return msgspec.to_builtins(value)
        case list():
            return [_plain(each, where) for each in value]
        case dict():
            return {key: _plain(each, where) for key, each in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise Inexpressible(f"{where}: the default {value!r} cannot be written as JSON")


_READ_DEFAULTS: dict[Scalar, Callable[[Any], Any]] = {
    Scalar.BYTES: base64.b64decode,
    Scalar.DOUBLE: float,
    Scalar.FLOAT: float,
    Scalar.DATE: date.fromisoformat,
    Scalar.TIME: time.fromisoformat,
    Scalar.TIMESTAMP: datetime.fromisoformat,
    Scalar.DURATION: lambda value: msgspec.convert(value, timedelta),
    Scalar.UUID: UUID,
}


def _escaped(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~")


def _all(parts: list[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(parts, 1))


def _numbered(name: str, number: int) -> str:
    return f"{name}Option{number}"


def _last(reference: str) -> str:
    """Return the name that a reference has for its target."""
    return camel(reference.rstrip("/").rpartition("/")[2].rpartition("#")[2].removesuffix(".json"))


def _member(value: str | int) -> str:
    return value if isinstance(value, str) else f"value_{value}".replace("-", "minus_")
