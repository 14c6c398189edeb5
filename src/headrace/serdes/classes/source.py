"""Python source from the model: classes that give the same schema again.

The text stands for itself: imports, enumerations and records in the order in which they are
needed, and nothing that a formatter would change. Names that Python cannot have get one that it
can, and keep their own in data.
"""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from headrace.serdes.classes.inspection import tidy
from headrace.serdes.classes.layout import (
    INDENT,
    WIDTH,
    Expression,
    Group,
    flat,
    keyword,
    lay_out,
    quoted,
    quoted_bytes,
    width,
)
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

_THIRD_PARTY = ("pydantic", "msgspec", "headrace.serdes.classes")

_WITHOUT_KIND = frozenset(
    {
        *(Scalar.NULL, Scalar.ANY, Scalar.BOOLEAN, Scalar.STRING, Scalar.BYTES, Scalar.LONG),
        *(Scalar.DOUBLE, Scalar.DATE, Scalar.TIME, Scalar.TIMESTAMP, Scalar.DURATION, Scalar.UUID),
    }
)


def write(shape: Shape, flavour: Flavour = Flavour.DATACLASS) -> str:
    """The source of a module with all classes of a shape."""
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
        for name, home in self._imports.items():
            homes.setdefault(home, []).append(name)
        own = sorted(home for home in homes if home not in _THIRD_PARTY)
        others = [[home for home in _THIRD_PARTY[:2] if home in homes]]
        others.append([home for home in _THIRD_PARTY[2:] if home in homes])
        groups = [own, *others]
        return "\n\n".join(
            "\n".join(_import_line(home, homes[home]) for home in group)
            for group in groups
            if group
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
        parts: list[Expression] = [quoted(definition.name)]
        if aliases:
            parts.append(keyword("aliases", _tuple([quoted(alias) for alias in aliases])))
        mark = Group(self._use("named"), "()", tuple(parts))
        return f"@{lay_out(mark, 1, '')}\n"

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
            lines += [f"{INDENT}model_config = {config}", ""]
        lines += [self._field(record, field) for field in record.fields]
        if not record.fields and not record.doc:
            lines.append(f"{INDENT}pass")
        return "\n".join(line.rstrip() for line in "\n".join(lines).rstrip().split("\n"))

    def _opening(self, record: Record) -> list[str]:
        name = self._classes[record.name]
        defaults = [field.default is not MISSING for field in record.fields]
        # A field without a default cannot come after one that has one, unless it is named in calls.
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
        annotation = self._annotation(field, attribute)
        head = f"{INDENT}{attribute}: "
        value = self._value(field, attribute)
        if value is None:
            return head + lay_out(annotation, len(head), INDENT)
        if width(f"{head}{flat(annotation)} = {flat(value)}") <= WIDTH:
            return f"{head}{flat(annotation)} = {flat(value)}"
        if isinstance(value, str) and self._is_better_in_a_call(head, annotation, value):
            value = self._call([keyword("default", value)])
        room = 3 + width(value) if isinstance(value, str) else len(" = field(")
        head += lay_out(annotation, len(head), INDENT, room) + " = "
        return head + lay_out(value, len(head.rpartition("\n")[2]), INDENT)

    def _is_better_in_a_call(self, head: str, annotation: Expression, value: str) -> bool:
        """A long default is split from a short annotation, and stands for itself if need be."""
        fits = width(head + flat(annotation) + " = field(") <= WIDTH
        return fits or isinstance(annotation, str) or width(value) + len("    ] = ") > WIDTH

    def _annotation(self, field: Field, attribute: str) -> Expression:
        marks: dict[str, Expression] = {}
        if field.name != attribute and self._flavour is Flavour.DATACLASS:
            marks["name"] = quoted(field.name)
        if field.doc:
            marks["doc"] = quoted(field.doc)
        if field.aliases:
            marks["aliases"] = _tuple([quoted(alias) for alias in field.aliases])
        if field.number is not None:
            marks["number"] = str(field.number)
        if field.oneof is not None:
            marks["oneof"] = quoted(field.oneof)
        plain = self._plain(_with_null_last(field))
        if any(name not in self._written for name in names_in(field.type)):
            plain = quoted(flat(plain))  # A class that comes later, or this one.
        return self._marked(plain, _marks(field.type) | marks)

    def _marked(self, plain: Expression, marks: dict[str, Expression]) -> Expression:
        if not marks:
            return plain
        wire = Group(
            self._use("Wire"), "()", tuple(keyword(name, each) for name, each in marks.items())
        )
        return Group(self._use("Annotated"), "[]", (plain, wire))

    def _type(self, type_: Type) -> Expression:
        return self._marked(self._plain(type_), _marks(type_))

    def _plain(self, type_: Type) -> Expression:
        """A type without what only an annotation can say."""
        match type_:
            case Scalar():
                name = PYTHON_TYPES[type_]
                return self._use(name) if name in HOMES else name
            case DecimalOf():
                return self._use("Decimal")
            case ListOf(item):
                return Group("list", "[]", (self._type(item),))
            case MapOf(value, key):
                return Group("dict", "[]", (self._type(key), self._type(value)))
            case Choice(values):
                parts = tuple(
                    quoted(value) if isinstance(value, str) else str(value) for value in values
                )
                return Group(self._use("Literal"), "[]", parts)
            case UnionOf(options):
                return self._union([self._type(option) for option in options])
            case Named(name):
                return self._classes[name]

    def _union(self, parts: list[Expression]) -> Expression:
        if sum(width(flat(part)) + 3 for part in parts) > WIDTH // 2:
            return Group(self._use("Union"), "[]", tuple(parts))
        return Group("", "[]", tuple(parts), " | ", is_bare=True)

    def _value(self, field: Field, attribute: str) -> Expression | None:
        """What stands behind the equals sign."""
        options: list[Expression] = []
        renamed = field.name != attribute and self._flavour is not Flavour.DATACLASS
        if field.default is not MISSING:
            value = self._default(field.default, field.type)
            mutable = isinstance(field.default, list | dict)
            if not mutable and not renamed:
                return value
            options.append(_factory(value) if mutable else keyword("default", value))
        if renamed:
            name = "alias" if self._flavour is Flavour.PYDANTIC else "name"
            options.append(keyword(name, quoted(field.name)))
        return self._call(options) if options else None

    def _call(self, options: list[Expression]) -> Expression:
        if self._flavour is Flavour.PYDANTIC:
            return Group(self._use("Field"), "()", tuple(options))
        home = "msgspec" if self._flavour is Flavour.MSGSPEC else "dataclasses"
        return Group(self._use("field", home), "()", tuple(options))

    def _default(self, value: Any, type_: Type) -> Expression:
        if isinstance(type_, UnionOf):
            type_ = self._fitting(value, type_)
        match value:
            case list():
                item = type_.item if isinstance(type_, ListOf) else Scalar.ANY
                return Group("", "[]", tuple(self._default(each, item) for each in value))
            case dict() if isinstance(type_, Named):
                return self._instance(value, type_.name)
            case dict():
                inner = type_.value if isinstance(type_, MapOf) else Scalar.ANY
                parts = [_item(key, self._default(each, inner)) for key, each in value.items()]
                return Group("", "{}", tuple(parts))
            case str() | int() if isinstance(type_, Named) and not isinstance(value, bool):
                return self._member(value, type_.name)
            case _:
                return self._literal(value)

    def _literal(self, value: Any) -> Expression:
        match value:
            case str():
                return quoted(value)
            case bytes():
                return quoted_bytes(value)
            case float() if value != value or value in (float("inf"), float("-inf")):
                return f'float("{value}")'
            case float():
                return repr(value).replace("e+", "e")
            case Decimal():
                return f'{self._use("Decimal")}("{value}")'
            case UUID():
                return f'{self._use("UUID")}("{value}")'
            case datetime():
                return self._moment(value)
            case date():
                return f"{self._use('date')}({value.year}, {value.month}, {value.day})"
            case time():
                return f"{self._use('time')}({_clock(value)})"
            case timedelta():
                parts = f"{value.days}, {value.seconds}, {value.microseconds}"
                return f"{self._use('timedelta')}({parts})"
            case _:
                return repr(value)

    def _moment(self, value: datetime) -> Expression:
        zone = f", tzinfo={self._use('UTC')}" if value.tzinfo else ""
        day = f"{value.year}, {value.month}, {value.day}"
        return f"{self._use('datetime')}({day}, {_clock(value)}{zone})"

    def _member(self, value: str | int, name: str) -> Expression:
        enumeration = self._shape.definitions[name]
        assert isinstance(enumeration, Enumeration)
        names = unique([identifier(each, "member") for each, _ in enumeration.members])
        for member, (_, each) in zip(names, enumeration.members, strict=True):
            if each == value:
                return f"{self._classes[name]}.{member}"
        return f"{self._classes[name]}({value!r})"

    def _instance(self, value: dict[str, Any], name: str) -> Expression:
        record = self._shape.record(name)
        parts = [
            keyword(
                self._attributes[name][field.name], self._default(value[field.name], field.type)
            )
            for field in record.fields
            if field.name in value
        ]
        return Group(self._classes[name], "()", tuple(parts))

    def _fitting(self, value: Any, type_: UnionOf) -> Type:
        """The option of a union that a default belongs to, as far as its source depends on it."""
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


def _marks(type_: Type) -> dict[str, Expression]:
    match type_:
        case Scalar() if type_ not in _WITHOUT_KIND:
            return {"kind": quoted(type_.value)}
        case DecimalOf(precision, scale) if precision is not None:
            return {"precision": str(precision), "scale": str(scale)}
        case _:
            return {}


def _with_null_last(field: Field) -> Type:
    """`str | None = None` reads best, and a default says which option comes first."""
    if field.default is not None or not isinstance(field.type, UnionOf):
        return field.type
    rest = [option for option in field.type.options if option is not Scalar.NULL]
    return UnionOf((*rest, Scalar.NULL))


def in_order(shape: Shape) -> list[str]:
    """Definitions after what they use, as far as they do not use each other."""
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
        return [f'{INDENT}"""{lines[0]}{space}"""', ""]
    rest = [f"{INDENT}{line}".rstrip() for line in lines[1:]]
    return [f'{INDENT}"""{lines[0]}', *rest, f'{INDENT}"""', ""]


def _import_line(home: str, names: list[str]) -> str:
    # As import sorters have it: constants, then classes, then functions.
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    return f"from {home} import {', '.join(ordered)}"


def _factory(value: Expression) -> Expression:
    text = flat(value)
    if text in ("[]", "{}"):
        return "default_factory=list" if text == "[]" else "default_factory=dict"
    assert isinstance(value, Group)
    return keyword("default_factory", Group(f"lambda: {value.head}", value.brackets, value.parts))


def _item(key: Any, value: Expression) -> Expression:
    name = quoted(key) if isinstance(key, str) else repr(key)
    if isinstance(value, str):
        return f"{name}: {value}"
    return Group(f"{name}: {value.head}", value.brackets, value.parts, value.flat_separator)


def _tuple(parts: list[Expression]) -> Expression:
    if len(parts) == 1:
        return f"({flat(parts[0])},)"
    return Group("", "()", tuple(parts))


def _clock(value: time | datetime) -> str:
    parts = [value.hour, value.minute, value.second, value.microsecond]
    while len(parts) > 2 and parts[-1] == 0:
        parts.pop()
    return ", ".join(map(str, parts))
