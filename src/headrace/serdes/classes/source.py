"""Python source from the model: classes that give the same schema again.

The module contains imports, enumerations and records in the order in which they are needed. Names
that Python does not accept are replaced, and kept as the name in data. Each field is one line,
imports are in one block: a formatter lays them out.
"""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from headrace.serdes.classes.inspection import tidy
from headrace.serdes.classes.model import (
    MISSING,
    PYTHON_TYPES,
    Choice,
    DecimalOf,
    Enumeration,
    Field,
    ListOf,
    MapOf,
    Named,
    Record,
    Scalar,
    Shape,
    Type,
    UnionOf,
    names_in,
)
from headrace.serdes.classes.naming import (
    HOMES,
    Flavour,
    attributes,
    class_names,
    identifier,
    unique,
)

INDENT = "    "

_WITHOUT_KIND = frozenset(
    {
        *(Scalar.NULL, Scalar.ANY, Scalar.BOOLEAN, Scalar.STRING, Scalar.BYTES, Scalar.LONG),
        *(Scalar.DOUBLE, Scalar.DATE, Scalar.TIME, Scalar.TIMESTAMP, Scalar.DURATION, Scalar.UUID),
    }
)


def write(shape: Shape, flavour: Flavour = Flavour.DATACLASS) -> str:
    """Return the source of a module with all classes of a shape."""
    return _Writer(shape, flavour).module()


class _Writer:
    def __init__(self, shape: Shape, flavour: Flavour) -> None:
        self._shape = shape
        self._flavour = flavour
        self._imports: dict[str, str] = {}
        self._classes = class_names(shape)
        self._attributes = {
            name: attributes(each, flavour, set(self._classes.values()))
            for name, each in shape.definitions.items()
            if isinstance(each, Record)
        }
        self._written: set[str] = set()

    def module(self) -> str:
        blocks = [self._definition(name) for name in in_order(self._shape)]
        return "\n\n\n".join([self._import_lines(), *blocks]) + "\n"

    def _use(self, name: str, home: str | None = None) -> str:
        self._imports[name] = home or HOMES[name]
        return name

    def _import_lines(self) -> str:
        homes: dict[str, list[str]] = {}
        for name, home in sorted(self._imports.items()):
            homes.setdefault(home, []).append(name)
        return "\n".join(
            f"from {home} import {', '.join(names)}" for home, names in sorted(homes.items())
        )

    def _definition(self, name: str) -> str:
        definition = self._shape.definitions[name]
        if isinstance(definition, Enumeration):
            text = self._enumeration(definition)
        else:
            text = self._record(definition)
        self._written.add(name)
        return self._name_mark(definition) + text

    def _name_mark(self, definition: Record | Enumeration) -> str:
        aliases = definition.aliases if isinstance(definition, Record) else ()
        if self._classes[definition.name] == definition.name and not aliases:
            return ""
        more = f", aliases={_tuple(aliases)}" if aliases else ""
        return f"@{self._use('named')}({quoted(definition.name)}{more})\n"

    def _enumeration(self, enumeration: Enumeration) -> str:
        text = all(isinstance(value, str) for _, value in enumeration.members)
        parent = self._use("StrEnum" if text else "IntEnum")
        lines = [f"class {self._classes[enumeration.name]}({parent}):", *_doc(enumeration.doc)]
        names = unique([identifier(name, "member") for name, _ in enumeration.members])
        for name, (_, value) in zip(names, enumeration.members, strict=True):
            lines.append(f"{INDENT}{name} = {quoted(value) if isinstance(value, str) else value}")
        return "\n".join(lines)

    def _record(self, record: Record) -> str:
        lines = [*self._opening(record), *_doc(record.doc)]
        attributes = self._attributes[record.name]
        if self._flavour is Flavour.PYDANTIC and any(
            attribute != name for name, attribute in attributes.items()
        ):
            config = f"{self._use('ConfigDict')}(populate_by_name=True)"
            lines.append(f"{INDENT}model_config = {config}")
        lines += [self._field(record, field) for field in record.fields]
        if not record.fields and not record.doc:
            lines.append(f"{INDENT}pass")
        return "\n".join(lines)

    def _opening(self, record: Record) -> list[str]:
        name = self._classes[record.name]
        defaults = [field.default is not MISSING for field in record.fields]
        # Only keyword arguments allow a field without a default after one with a default.
        keywords_only = any(defaults) and not all(defaults[defaults.index(True) :])
        match self._flavour:
            case Flavour.DATACLASS:
                mark = "(kw_only=True)" if keywords_only else ""
                return [f"@{self._use('dataclass')}{mark}", f"class {name}:"]
            case Flavour.MSGSPEC:
                options = ", kw_only=True" if keywords_only else ""
                return [f"class {name}({self._use('Struct')}{options}):"]
            case Flavour.PYDANTIC:
                return [f"class {name}({self._use('BaseModel')}):"]

    def _field(self, record: Record, field: Field) -> str:
        attribute = self._attributes[record.name][field.name]
        line = f"{INDENT}{attribute}: {self._annotation(field, attribute)}"
        value = self._value(field, attribute)
        return line if value is None else f"{line} = {value}"

    def _annotation(self, field: Field, attribute: str) -> str:
        marks = _marks(field.type)
        if field.name != attribute and self._flavour is Flavour.DATACLASS:
            marks["name"] = quoted(field.name)
        if field.doc:
            marks["doc"] = quoted(field.doc)
        if field.aliases:
            marks["aliases"] = _tuple(field.aliases)
        if field.number is not None:
            marks["number"] = str(field.number)
        if field.oneof is not None:
            marks["oneof"] = quoted(field.oneof)
        plain = self._plain(_with_null_last(field))
        if any(name not in self._written for name in names_in(field.type)):
            plain = quoted(plain)  # It is the class itself, or defined later.
        return self._marked(plain, marks)

    def _marked(self, plain: str, marks: dict[str, str]) -> str:
        if not marks:
            return plain
        wire = f"{self._use('Wire')}({_keywords(marks)})"
        return f"{self._use('Annotated')}[{plain}, {wire}]"

    def _type(self, type_: Type) -> str:
        return self._marked(self._plain(type_), _marks(type_))

    def _plain(self, type_: Type) -> str:
        """Return a type without the parts that need `Annotated`."""
        match type_:
            case Scalar():
                name = PYTHON_TYPES[type_]
                return self._use(name) if name in HOMES else name
            case DecimalOf():
                return self._use("Decimal")
            case ListOf(item):
                return f"list[{self._type(item)}]"
            case MapOf(value, key):
                return f"dict[{self._type(key)}, {self._type(value)}]"
            case Choice(values):
                return f"{self._use('Literal')}[{', '.join(map(self._literal, values))}]"
            case UnionOf(options):
                return " | ".join(map(self._type, options))
            case Named(name):
                return self._classes[name]

    def _value(self, field: Field, attribute: str) -> str | None:
        """Return the right side of the equals sign, if any."""
        options: dict[str, str] = {}
        renamed = field.name != attribute and self._flavour is not Flavour.DATACLASS
        if field.default is not MISSING:
            value = self._default(field.default, field.type)
            mutable = isinstance(field.default, list | dict)
            if not mutable and not renamed:
                return value
            options = {"default_factory": _factory(value)} if mutable else {"default": value}
        if renamed:
            options["alias" if self._flavour is Flavour.PYDANTIC else "name"] = quoted(field.name)
        return f"{self._call()}({_keywords(options)})" if options else None

    def _call(self) -> str:
        match self._flavour:
            case Flavour.PYDANTIC:
                return self._use("Field")
            case Flavour.MSGSPEC:
                return self._use("field", "msgspec")
            case Flavour.DATACLASS:
                return self._use("field", "dataclasses")

    def _default(self, value: Any, type_: Type) -> str:
        if isinstance(type_, UnionOf):
            type_ = self._fitting(value, type_)
        match value:
            case list():
                item = type_.item if isinstance(type_, ListOf) else Scalar.ANY
                return f"[{', '.join(self._default(each, item) for each in value)}]"
            case dict() if isinstance(type_, Named):
                return self._instance(value, type_.name)
            case dict():
                inner = type_.value if isinstance(type_, MapOf) else Scalar.ANY
                parts = [
                    f"{self._literal(key)}: {self._default(each, inner)}"
                    for key, each in value.items()
                ]
                return f"{{{', '.join(parts)}}}"
            case str() | int() if isinstance(type_, Named) and not isinstance(value, bool):
                return self._member(value, type_.name)
            case _:
                return self._literal(value)

    def _literal(self, value: Any) -> str:
        match value:
            case str():
                return quoted(value)
            case float() if value != value or value in (float("inf"), float("-inf")):
                return f'float("{value}")'
            case Decimal():
                return f'{self._use("Decimal")}("{value}")'
            case UUID():
                return f'{self._use("UUID")}("{value}")'
            case datetime():
                return self._datetime(value)
            case date():
                return f"{self._use('date')}({value.year}, {value.month}, {value.day})"
            case time():
                return f"{self._use('time')}({_clock(value)})"
            case timedelta():
                parts = f"{value.days}, {value.seconds}, {value.microseconds}"
                return f"{self._use('timedelta')}({parts})"
            case _:
                return repr(value)

    def _datetime(self, value: datetime) -> str:
        zone = f", tzinfo={self._use('UTC')}" if value.tzinfo else ""
        day = f"{value.year}, {value.month}, {value.day}"
        return f"{self._use('datetime')}({day}, {_clock(value)}{zone})"

    def _member(self, value: str | int, name: str) -> str:
        enumeration = self._shape.definitions[name]
        assert isinstance(enumeration, Enumeration)
        names = unique([identifier(each, "member") for each, _ in enumeration.members])
        for member, (_, each) in zip(names, enumeration.members, strict=True):
            if each == value:
                return f"{self._classes[name]}.{member}"
        return f"{self._classes[name]}({value!r})"

    def _instance(self, value: dict[str, Any], name: str) -> str:
        parts = {
            self._attributes[name][field.name]: self._default(value[field.name], field.type)
            for field in self._shape.record(name).fields
            if field.name in value
        }
        return f"{self._classes[name]}({_keywords(parts)})"

    def _fitting(self, value: Any, type_: UnionOf) -> Type:
        """Return the option of a union that a default belongs to, if its source depends on it."""
        for option in type_.options:
            match option:
                case Named(name) if isinstance(self._shape.definitions[name], Record):
                    fits = isinstance(value, dict)
                case Named(name):
                    enumeration = self._shape.definitions[name]
                    assert isinstance(enumeration, Enumeration)
                    fits = value in [each for _, each in enumeration.members]
                case ListOf():
                    fits = isinstance(value, list)
                case MapOf():
                    fits = isinstance(value, dict)
                case _:
                    fits = False
            if fits:
                return option
        return type_


def _marks(type_: Type) -> dict[str, str]:
    match type_:
        case Scalar() if type_ not in _WITHOUT_KIND:
            return {"kind": quoted(type_.value)}
        case DecimalOf(precision, scale) if precision is not None:
            return {"precision": str(precision), "scale": str(scale)}
        case _:
            return {}


def _with_null_last(field: Field) -> Type:
    """Put null last, as in `str | None = None`; the default decides the order in the schema."""
    if field.default is not None or not isinstance(field.type, UnionOf):
        return field.type
    rest = [option for option in field.type.options if option is not Scalar.NULL]
    return UnionOf((*rest, Scalar.NULL))


def in_order(shape: Shape) -> list[str]:
    """Return the definitions, each after the ones it uses, except in cycles."""
    order: list[str] = []
    seen: set[str] = set()
    waiting = [(shape.root.name, False)]
    while waiting:
        name, is_done = waiting.pop()
        if is_done:
            order.append(name)
            continue
        if name in seen:
            continue
        seen.add(name)
        waiting.append((name, True))
        waiting += [(used, False) for used in reversed(_uses(shape, name)) if used not in seen]
    return order


def _uses(shape: Shape, name: str) -> list[str]:
    definition = shape.definitions[name]
    if isinstance(definition, Enumeration):
        return []
    return [used for field in definition.fields for used in names_in(field.type)]


def _doc(text: str | None) -> list[str]:
    lines = tidy(text or "").replace("\\", "\\\\").replace('"""', '\\"\\"\\"').split("\n")
    if lines == [""]:
        return []
    if len(lines) == 1:
        space = " " if lines[0].endswith('"') else ""
        return [f'{INDENT}"""{lines[0]}{space}"""']
    rest = [f"{INDENT}{line}".rstrip() for line in lines[1:]]
    return [f'{INDENT}"""{lines[0]}', *rest, f'{INDENT}"""']


def quoted(text: str) -> str:
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def _keywords(values: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _factory(value: str) -> str:
    return {"[]": "list", "{}": "dict"}.get(value, f"lambda: {value}")


def _tuple(texts: tuple[str, ...]) -> str:
    return f"({', '.join(map(quoted, texts))}{',' if len(texts) == 1 else ''})"


def _clock(value: time | datetime) -> str:
    parts = [value.hour, value.minute, value.second, value.microsecond]
    while len(parts) > 2 and parts[-1] == 0:
        parts.pop()
    return ", ".join(map(str, parts))
