"""Values of objects as the schemas of their classes have them, and back.

Libraries take objects apart by rules of their own: fields by the names of the class, enumerations
by their values, bytes as base64. Where the schema that is made of a class says something else,
values are changed here. What is to be changed is found once for a class; one whose values are
those of its schema already costs nothing.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from headrace.serdes.classes.inspection import is_record, shape_of
from headrace.serdes.classes.model import (
    Choice,
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
    without_null,
)
from headrace.serdes.schemas import SchemaType

Change: TypeAlias = Callable[[Any], Any]

_CLASSES_MAX = 1_000


@lru_cache(_CLASSES_MAX)
def to_schema(class_: type, schema_type: SchemaType) -> Change | None:
    """Changes what a library makes of an object into a value of the schema of its class."""
    return _change(class_, _Direction(schema_type, {}, writes=True))


@lru_cache(_CLASSES_MAX)
def from_schema(class_: type, schema_type: SchemaType) -> Change | None:
    """Changes a value of the schema of a class into what a library makes an object of."""
    scalars = {Scalar.BYTES: _bytes} if schema_type is SchemaType.JSON else {}
    return _change(class_, _Direction(schema_type, scalars, writes=False))


@dataclass(frozen=True, slots=True)
class _Direction:
    """What differs between the types of schemas, and between writing and reading."""

    schema_type: SchemaType
    scalars: Mapping[Scalar, Change]
    writes: bool

    def words(self, name: str, members: tuple[tuple[str, str | int], ...]) -> dict[Any, Any]:
        """The values of an enumeration that are others on the other side."""
        found: dict[str | int, str] = {}
        if self.schema_type is SchemaType.PROTOBUF:
            from headrace.serdes.classes.protobuf import constants

            found = constants(name, members)
        elif self.schema_type is SchemaType.AVRO:
            found = {value: each for each, value in members if not isinstance(value, str)}
        return found if self.writes else {word: value for value, word in found.items()}

    def names(self, field: Field) -> tuple[str, str]:
        """The name of a field here, and there."""
        if self.writes:
            return field.dumped or field.name, field.name
        return field.name, field.loaded or field.name

    def is_filled(self, field: Field) -> bool:
        """Protobuf leaves out what is null, so whoever reads has to say it."""
        reads_protobuf = self.schema_type is SchemaType.PROTOBUF and not self.writes
        return reads_protobuf and without_null(field.type) is not None


def _change(class_: type, direction: _Direction) -> Change | None:
    if not is_record(class_):
        return None
    try:
        shape = shape_of(class_)
    except Inexpressible:
        # It has no schema of its own, so its values are written by another as they are.
        return None
    return _Changes(shape, direction).of(shape.root, "")


class _Changes:
    """The changes of all types of a shape; None where there is nothing to change."""

    def __init__(self, shape: Shape, direction: _Direction) -> None:
        self._shape = shape
        self._direction = direction
        self._records: dict[str, Change] = {}
        self._changed = self._names_of_changed()

    def of(self, type_: Type, where: str) -> Change | None:
        match type_:
            case Scalar():
                return self._direction.scalars.get(type_)
            case ListOf(item):
                return _in_list(self.of(item, where))
            case MapOf(value):
                return _in_dict(self.of(value, where))
            case UnionOf(options):
                single = without_null(type_)
                if single is None or isinstance(single, UnionOf):
                    return self._of_options(options)
                return _unless_null(self.of(single, where))
            case Choice():
                return _looked_up(self._words(type_, where))
            case Named(name) if name in self._changed:
                return self._named(name)
            case _:
                return None

    def _named(self, name: str) -> Change:
        definition = self._shape.definitions[name]
        if isinstance(definition, Enumeration):
            found = _looked_up(self._words(Named(name), ""))
            assert found is not None, "its values are known to change"
            return found
        if name not in self._records:
            self._records[name] = lambda value: self._records[name](value)  # It may hold itself.
            self._records[name] = self._record(definition)
        return lambda value: self._records[name](value)

    def _record(self, record: Record) -> Change:
        names: dict[str, str] = {}
        changes: dict[str, Change] = {}
        absent: dict[str, str] = {}
        filled: list[str] = []
        for field in record.fields:
            here, there = self._direction.names(field)
            names[here] = there
            change = self.of(field.type, _where(record, field))
            if change is not None:
                changes[here] = change
            if self._direction.is_filled(field):
                filled.append(there)
            constant = self._unspecified(field.type, _where(record, field))
            if constant is not None:
                absent[here] = constant

        def changed(value: Any) -> Any:
            if not isinstance(value, dict):
                return value  # The encoder tells what is wrong with it.
            found: dict[Any, Any] = dict.fromkeys(filled)
            for name, each in value.items():
                if name not in absent or each != absent[name]:
                    change = changes.get(name)
                    found[names.get(name, name)] = each if change is None else change(each)
            return found

        return changed

    def _of_options(self, options: tuple[Type, ...]) -> Change | None:
        """Of several types only records and enumerations can be told from the others."""
        records: list[tuple[frozenset[str], Change]] = []
        words: dict[Any, Any] = {}
        for option in options:
            if not isinstance(option, Named) or option.name not in self._changed:
                continue
            definition = self._shape.definitions[option.name]
            if isinstance(definition, Record):
                names = frozenset(self._direction.names(each)[0] for each in definition.fields)
                records.append((names, self._named(option.name)))
            else:
                words |= self._words(option, "")
        if not records and not words:
            return None

        def changed(value: Any) -> Any:
            if isinstance(value, dict):
                return next(
                    (change(value) for names, change in records if names == set(value)), value
                )
            return words.get(value, value) if isinstance(value, str | int) else value

        return changed

    def _words(self, type_: Type, where: str) -> dict[Any, Any]:
        """Those of an enumeration or a choice, which Protobuf names by the field that it is of."""
        if isinstance(type_, Choice):
            members = tuple((str(value), value) for value in type_.values)
            if self._direction.schema_type is SchemaType.PROTOBUF:
                return self._direction.words(camel(*where.split(".")), members)
            return {}
        if not isinstance(type_, Named):
            return {}
        definition = self._shape.definitions[type_.name]
        if not isinstance(definition, Enumeration):
            return {}
        return self._direction.words(type_.name, definition.members)

    def _unspecified(self, type_: Type, where: str) -> str | None:
        """The constant that says of a field that it was left out."""
        single = without_null(type_) or type_
        if self._direction.schema_type is not SchemaType.PROTOBUF or self._direction.writes:
            return None
        words = self._words(single, where)
        if not words:
            return None
        from headrace.serdes.classes.protobuf import unspecified

        name = single.name if isinstance(single, Named) else camel(*where.split("."))
        constant = unspecified(name)
        return None if constant in words else constant

    def _names_of_changed(self) -> frozenset[str]:
        """Enumerations whose values change and records with something that does, however deep."""
        found: set[str] = set()
        while True:
            more = {
                name
                for name in self._shape.definitions
                if name not in found and self._is_changed(name, found)
            }
            if not more:
                return frozenset(found)
            found |= more

    def _is_changed(self, name: str, known: set[str]) -> bool:
        definition = self._shape.definitions[name]
        if isinstance(definition, Enumeration):
            return bool(self._words(Named(name), ""))
        return any(self._has_change(definition, field, known) for field in definition.fields)

    def _has_change(self, record: Record, field: Field, known: set[str]) -> bool:
        here, there = self._direction.names(field)
        is_named = here == there and not self._direction.is_filled(field)
        return not is_named or self._holds_change(field.type, _where(record, field), known)

    def _holds_change(self, type_: Type, where: str, known: set[str]) -> bool:
        match type_:
            case Scalar():
                return type_ in self._direction.scalars
            case ListOf(inner) | MapOf(inner):
                return self._holds_change(inner, where, known)
            case UnionOf(options):
                return any(self._holds_change(each, where, known) for each in options)
            case Choice():
                return bool(self._words(type_, where))
            case Named(name):
                return name in known
            case _:
                return False


def _where(record: Record, field: Field) -> str:
    return f"{record.name.rpartition('.')[2]}.{field.name}"


def _in_list(change: Change | None) -> Change | None:
    if change is None:
        return None
    return lambda value: [change(each) for each in value] if isinstance(value, list) else value


def _in_dict(change: Change | None) -> Change | None:
    if change is None:
        return None

    def changed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: change(each) for key, each in value.items()}

    return changed


def _unless_null(change: Change | None) -> Change | None:
    if change is None:
        return None
    return lambda value: None if value is None else change(value)


def _looked_up(words: Mapping[Any, Any]) -> Change | None:
    if not words:
        return None
    return lambda value: words.get(value, value) if isinstance(value, str | int) else value


def _bytes(value: Any) -> Any:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value
