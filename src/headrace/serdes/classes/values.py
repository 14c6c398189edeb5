"""Converts values of objects to the form of their class's schema, and back.

Libraries dump objects by their own rules: fields by the class's names, enumerations by value, bytes
as base64. If the schema of a class differs, these functions convert the values. They are compiled
once per class, and None if nothing differs.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from headrace.serdes.classes import model
from headrace.serdes.classes.inspection import is_record, shape_of
from headrace.serdes.schemas import SchemaType

Change: TypeAlias = Callable[[Any], Any]

_CLASSES_MAX = 1_000


@lru_cache(_CLASSES_MAX)
def to_schema(class_: type, schema_type: SchemaType) -> Change | None:
    """Return the conversion from a dumped object to a value of its class's schema."""
    return _change(class_, _Direction(schema_type, {}, writes=True))


@lru_cache(_CLASSES_MAX)
def from_schema(class_: type, schema_type: SchemaType) -> Change | None:
    """Return the conversion from a value of a class's schema to the input of its library."""
    scalars = {model.Scalar.BYTES: _bytes} if schema_type is SchemaType.JSON else {}
    return _change(class_, _Direction(schema_type, scalars, writes=False))


@dataclass(frozen=True, slots=True)
class _Direction:
    """The differences between schema types, and between writing and reading."""

    schema_type: SchemaType
    scalars: Mapping[model.Scalar, Change]
    writes: bool

    def words(self, name: str, members: tuple[tuple[str, str | int], ...]) -> dict[Any, Any]:
        """Return the values of an enumeration that differ on the other side."""
        found: dict[str | int, str] = {}
        if self.schema_type is SchemaType.PROTOBUF:
            from headrace.serdes.classes.protobuf import constants

            found = constants(name, members)
        elif self.schema_type is SchemaType.AVRO:
            found = {value: each for each, value in members if not isinstance(value, str)}
        return found if self.writes else {word: value for value, word in found.items()}

    def names(self, field: model.Field) -> tuple[str, str]:
        """Return the name of a field in the input, and in the output."""
        if self.writes:
            return field.dumped or field.name, field.name
        return field.name, field.loaded or field.name

    def is_filled(self, field: model.Field) -> bool:
        """Return whether absent fields become null, as Protobuf omits null."""
        reads_protobuf = self.schema_type is SchemaType.PROTOBUF and not self.writes
        return reads_protobuf and model.without_null(field.type) is not None


def _change(class_: type, direction: _Direction) -> Change | None:
    if not is_record(class_):
        return None
    try:
        shape = shape_of(class_)
    except model.Inexpressible:
        # A class without a schema is written unchanged by a given one.
        return None
    return _Changes(shape, direction).of(shape.root, "")


class _Changes:
    """The conversions of all types of a shape; None for types that need none."""

    def __init__(self, shape: model.Shape, direction: _Direction) -> None:
        self._shape = shape
        self._direction = direction
        self._records: dict[str, Change | None] = {}

    def of(self, type_: model.Type, where: str) -> Change | None:
        match type_:
            case model.Scalar():
                return self._direction.scalars.get(type_)
            case model.ListOf(item):
                return _in_list(self.of(item, where))
            case model.MapOf(value):
                return _in_dict(self.of(value, where))
            case model.UnionOf(options):
                single = model.without_null(type_)
                if single is None or isinstance(single, model.UnionOf):
                    return self._of_options(options)
                return _unless_null(self.of(single, where))
            case model.Choice():
                return _looked_up(self._words(type_, where))
            case model.Named(name):
                return self._named(name)
            case _:
                return None

    def _named(self, name: str) -> Change | None:
        definition = self._shape.definitions[name]
        if isinstance(definition, model.Enumeration):
            return _looked_up(self._words(model.Named(name), ""))
        if name not in self._records:
            # A record may be recursive, so a use within itself looks its conversion up later.
            self._records[name] = lambda value: self._converted(name, value)
            self._records[name] = self._record(definition)
        return self._records[name]

    def _converted(self, name: str, value: Any) -> Any:
        change = self._records[name]
        return value if change is None else change(value)

    def _record(self, record: model.Record) -> Change | None:
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
        if not (changes or filled or absent) and all(here == names[here] for here in names):
            return None

        def changed(value: Any) -> Any:
            if not isinstance(value, dict):
                return value  # The encoder reports the error.
            found: dict[Any, Any] = dict.fromkeys(filled)
            for name, each in value.items():
                if name not in absent or each != absent[name]:
                    change = changes.get(name)
                    found[names.get(name, name)] = each if change is None else change(each)
            return found

        return changed

    def _of_options(self, options: tuple[model.Type, ...]) -> Change | None:
        """Convert records and enumerations in a union; other options cannot be distinguished."""
        records: list[tuple[frozenset[str], Change]] = []
        words: dict[Any, Any] = {}
        for option in options:
            if not isinstance(option, model.Named):
                continue
            definition = self._shape.definitions[option.name]
            change = self._named(option.name)
            if isinstance(definition, model.Enumeration):
                words |= self._words(option, "")
            elif change is not None:
                names = frozenset(self._direction.names(each)[0] for each in definition.fields)
                records.append((names, change))
        if not records and not words:
            return None

        def changed(value: Any) -> Any:
            if isinstance(value, dict):
                return next(
                    (change(value) for names, change in records if names == set(value)), value
                )
            return words.get(value, value) if isinstance(value, str | int) else value

        return changed

    def _words(self, type_: model.Type, where: str) -> dict[Any, Any]:
        """Return the differing values of an enumeration or a choice; Protobuf's choices have the
        name of their field."""
        if isinstance(type_, model.Choice):
            members = tuple((str(value), value) for value in type_.values)
            if self._direction.schema_type is SchemaType.PROTOBUF:
                return self._direction.words(model.camel(*where.split(".")), members)
            return {}
        if not isinstance(type_, model.Named):
            return {}
        definition = self._shape.definitions[type_.name]
        if not isinstance(definition, model.Enumeration):
            return {}
        return self._direction.words(type_.name, definition.members)

    def _unspecified(self, type_: model.Type, where: str) -> str | None:
        """Return the constant that represents an absent field."""
        single = model.without_null(type_) or type_
        if self._direction.schema_type is not SchemaType.PROTOBUF or self._direction.writes:
            return None
        words = self._words(single, where)
        if not words:
            return None
        from headrace.serdes.classes.protobuf import unspecified

        name = single.name if isinstance(single, model.Named) else model.camel(*where.split("."))
        constant = unspecified(name)
        return None if constant in words else constant


def _where(record: model.Record, field: model.Field) -> str:
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
