"""Reads classes into the model: dataclasses, Pydantic models, msgspec Structs, and their parts."""

import dataclasses
import datetime
import enum
import inspect
import types
import typing
from collections import abc
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import msgspec

from headrace.serdes.classes.model import (
    MISSING,
    PYTHON_TYPES,
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
    union,
)
from headrace.serdes.classes.wire import ALIASES, NAME, Wire

_SCALARS: dict[Any, Scalar] = {
    type(None): Scalar.NULL,
    None: Scalar.NULL,
    Any: Scalar.ANY,
    bool: Scalar.BOOLEAN,
    str: Scalar.STRING,
    bytes: Scalar.BYTES,
    int: Scalar.LONG,
    float: Scalar.DOUBLE,
    datetime.date: Scalar.DATE,
    datetime.time: Scalar.TIME,
    datetime.datetime: Scalar.TIMESTAMP,
    datetime.timedelta: Scalar.DURATION,
    UUID: Scalar.UUID,
}
_LISTS = (list, tuple, set, frozenset, abc.Sequence, abc.Set, abc.Collection, abc.Iterable)
_MAPS = (dict, abc.Mapping, abc.MutableMapping)


_NOTHING_MORE = Wire()


@dataclasses.dataclass(frozen=True, slots=True)
class _Declared:
    """A field as declared by its class."""

    attribute: str
    name: str
    loaded: str
    default: Any = MISSING
    wire: Wire = _NOTHING_MORE


def shape_of(cls: type) -> Shape:
    """Return the model of a class; an error names the field that no schema can express."""
    reader = _Reader()
    root = reader.named(cls, cls.__name__)
    if not isinstance(reader.definitions[root.name], Record):
        raise Inexpressible(f"{cls.__name__} is an enumeration; a schema is made from a record")
    return Shape(root, reader.definitions)


class _Reader:
    def __init__(self) -> None:
        self.definitions: dict[str, Record | Enumeration] = {}
        self._names: dict[type, str] = {}

    def named(self, cls: type, where: str) -> Named:
        """Return the name of a class, which is read on its first use."""
        if cls not in self._names:
            name = cls.__dict__.get(NAME, cls.__name__)
            if name in self._names.values():
                raise Inexpressible(
                    f"{where}: two classes have the name {name}; rename one with @named"
                )
            self._names[cls] = name
            # Reserved, so that definitions keep the order of their first use.
            self.definitions[name] = Record(name=name, fields=())
            self.definitions[name] = self._definition(cls, name, where)
        return Named(self._names[cls])

    def _definition(self, cls: type, name: str, where: str) -> Record | Enumeration:
        if issubclass(cls, enum.Enum):
            return Enumeration(name=name, members=_members(cls), doc=_doc(cls))
        hints = _hints(cls, where)
        fields = tuple(
            self._field(declared, hints[declared.attribute], f"{where}.{declared.attribute}")
            for declared in _declared(cls, where)
        )
        _check_names(fields, where)
        aliases = cls.__dict__.get(ALIASES, ())
        return Record(name=name, fields=fields, doc=_doc(cls), aliases=aliases)

    def _field(self, declared: _Declared, hint: Any, where: str) -> Field:
        wire = _merged(declared.wire, _wire(hint))
        return Field(
            name=wire.name or declared.name,
            type=self.read(hint, where),
            default=_plain(declared.default),
            doc=wire.doc,
            aliases=wire.aliases,
            number=wire.number,
            oneof=wire.oneof,
            dumped=declared.name,
            loaded=declared.loaded,
        )

    def read(self, hint: Any, where: str) -> Type:
        if get_origin(hint) is Annotated:
            return self._annotated(hint, where)
        if isinstance(hint, typing.NewType):
            return self.read(hint.__supertype__, where)
        try:
            if hint in _SCALARS:
                return _SCALARS[hint]
        except TypeError:
            raise _unknown(hint, where) from None
        if hint is Decimal:
            return DecimalOf()
        if isinstance(hint, type) and get_origin(hint) is None and hint not in (*_LISTS, *_MAPS):
            return self._class(hint, where)
        return self._generic(hint, where)

    def _class(self, cls: type, where: str) -> Type:
        if not issubclass(cls, enum.Enum) and not is_record(cls):
            raise _unknown(cls, where)
        return self.named(cls, where)

    def _generic(self, hint: Any, where: str) -> Type:
        origin, arguments = get_origin(hint) or hint, get_args(hint)
        if origin is Literal:
            return _choice(arguments, where)
        if origin in (Union, types.UnionType):
            return union([self.read(option, where) for option in arguments])
        if origin is tuple and arguments[1:] != (...,):
            raise Inexpressible(f"{where}: a tuple of fixed length has no schema; use a record")
        if origin in _LISTS:
            return ListOf(self.read(arguments[0], where) if arguments else Scalar.ANY)
        if origin in _MAPS:
            return self._map(arguments or (str, Any), where)
        raise _unknown(hint, where)

    def _map(self, arguments: tuple[Any, ...], where: str) -> Type:
        key = self.read(arguments[0], where)
        if not isinstance(key, Scalar) or PYTHON_TYPES[key] not in ("str", "int", "bool"):
            raise Inexpressible(f"{where}: keys of a dict are strings, integers or booleans")
        return MapOf(self.read(arguments[1], where), key)

    def _annotated(self, hint: Any, where: str) -> Type:
        inner = self.read(hint.__origin__, where)
        for wire in (each for each in hint.__metadata__ if isinstance(each, Wire)):
            if isinstance(inner, DecimalOf) and wire.precision is not None:
                inner = DecimalOf(wire.precision, wire.scale)
            if wire.kind is not None:
                inner = _kind(wire.kind, inner, where)
        return inner


def _kind(kind: str, inner: Type, where: str) -> Type:
    kinds = {scalar.value: scalar for scalar in Scalar}
    fits = isinstance(inner, Scalar) and kind in kinds
    if not fits or PYTHON_TYPES[kinds[kind]] != PYTHON_TYPES[typing.cast(Scalar, inner)]:
        raise Inexpressible(f"{where}: the kind '{kind}' does not fit this type")
    return kinds[kind]


def is_record(cls: type) -> bool:
    """Return whether a class has fields for a schema."""
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, msgspec.Struct)
        or hasattr(cls, "model_fields")
    )


def _declared(cls: type, where: str) -> list[_Declared]:
    if dataclasses.is_dataclass(cls):
        return [_from_dataclass(each) for each in dataclasses.fields(cls)]
    if issubclass(cls, msgspec.Struct):
        return [_from_struct(each) for each in msgspec.structs.fields(cls)]
    if hasattr(cls, "model_fields"):
        return [_from_model(name, each) for name, each in cls.model_fields.items()]
    raise Inexpressible(f"{where} is not a dataclass, Pydantic model or msgspec Struct")


def _from_dataclass(declared: "dataclasses.Field[Any]") -> _Declared:
    known = {each.name for each in dataclasses.fields(Wire)}
    more = {key: value for key, value in declared.metadata.items() if key in known}
    default = declared.default
    if declared.default_factory is not dataclasses.MISSING:
        default = _constant(declared.default_factory)
    elif default is dataclasses.MISSING:
        default = MISSING
    return _Declared(declared.name, declared.name, declared.name, default, Wire(**more))


def _from_struct(declared: msgspec.structs.FieldInfo) -> _Declared:
    default: Any = declared.default
    if declared.default_factory is not msgspec.NODEFAULT:
        default = _constant(declared.default_factory)
    elif default is msgspec.NODEFAULT:
        default = MISSING
    return _Declared(declared.name, declared.encode_name, declared.encode_name, default)


def _from_model(name: str, declared: Any) -> _Declared:
    if declared.is_required():
        default: Any = MISSING
    elif declared.default_factory is not None:
        default = _constant(declared.default_factory)
    else:
        default = declared.default
    marks = [each for each in declared.metadata if isinstance(each, Wire)]
    wire = _merged(Wire(doc=declared.description), marks[0] if marks else Wire())
    dumped = declared.serialization_alias or declared.alias or name
    loaded = declared.validation_alias or declared.alias
    return _Declared(name, dumped, loaded if isinstance(loaded, str) else name, default, wire)


def _constant(factory: Any) -> Any:
    """Return a factory's default; MISSING for a factory of changing values such as new ids."""
    first = factory()
    return first if first == factory() else MISSING


def _wire(hint: Any) -> Wire:
    """Merge the annotations of a field, including msgspec's descriptions."""
    found = Wire()
    for mark in hint.__metadata__ if get_origin(hint) is Annotated else ():
        if isinstance(mark, Wire):
            found = _merged(found, mark)
        elif isinstance(mark, msgspec.Meta):
            found = _merged(found, Wire(doc=mark.description))
    return found


def _merged(first: Wire, second: Wire) -> Wire:
    values = {each.name: getattr(second, each.name) for each in dataclasses.fields(Wire)}
    return dataclasses.replace(first, **{key: value for key, value in values.items() if value})


def _hints(cls: type, where: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise Inexpressible(
            f"{where}: {error}. Define classes that refer to each other at module level"
        ) from None


def _members(cls: type[enum.Enum]) -> tuple[tuple[str, str | int], ...]:
    members: list[tuple[str, str | int]] = []
    for index, member in enumerate(cls):
        value = member.value
        members.append((member.name, value if isinstance(value, str | int) else index))
    return tuple(members)


def _doc(cls: type) -> str | None:
    """Return the docstring, unless it is the signature that dataclasses generate."""
    text = cls.__dict__.get("__doc__")
    if not text or text.startswith(f"{cls.__name__}("):
        return None
    return tidy(text)


def tidy(text: str) -> str:
    """Return a docstring without indentation and surrounding white space."""
    lines = [line.rstrip() for line in inspect.cleandoc(text).splitlines()]
    return "\n".join(lines).strip()


def _choice(values: tuple[Any, ...], where: str) -> Type:
    chosen = tuple(value for value in values if value is not None)
    if not all(isinstance(value, str | int) for value in chosen):
        raise Inexpressible(f"{where}: a Literal holds strings, integers or booleans")
    if len(chosen) == len(values):
        return Choice(chosen)
    return union([Scalar.NULL, Choice(chosen)] if chosen else [Scalar.NULL])


def _check_names(fields: tuple[Field, ...], where: str) -> None:
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise Inexpressible(f"{where}: two fields have the name '{name}' in data")


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum) and value is not MISSING:
        return value.value if isinstance(value.value, str | int) else value.name
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_plain(each) for each in value]
        return sorted(items, key=repr) if isinstance(value, set | frozenset) else items
    if not isinstance(value, type) and is_record(type(value)):
        declared = _declared(type(value), type(value).__name__)
        return {each.name: _plain(getattr(value, each.attribute)) for each in declared}
    return value


def _unknown(hint: Any, where: str) -> Inexpressible:
    name = getattr(hint, "__name__", str(hint))
    return Inexpressible(
        f"{where}: {name} has no schema. Use plain types, dates, UUID, Decimal, Enum, Literal, "
        "lists, dicts, dataclasses, Pydantic models or msgspec Structs"
    )
