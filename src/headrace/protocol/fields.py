"""The annotations of messages, read into objects that the codec compiles from."""

import sys
from typing import Any, TypeAlias, get_args

import msgspec

from headrace.protocol.message import FrozenStructure, Structure

AnyStructure: TypeAlias = type[Structure] | type[FrozenStructure]

FIXED_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The types of fixed width, with their codes of `struct`."""

_KINDS = {bool: "bool", float: "float64", str: "string", bytes: "bytes"}
"""The types of the wire that need no name of their own in Python."""

FIXED_SIZES = {"?": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}


class Versions(msgspec.Struct, frozen=True):
    """An inclusive range of versions, without an end unless one is given."""

    first: int
    last: int = sys.maxsize

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NO_VERSIONS = Versions(1, 0)


class Field(msgspec.Struct, frozen=True):
    """A field on the wire, and the versions that have it."""

    name: str
    kind: str
    """A primitive type; of a structure or an array of them, the class's name."""
    structure: AnyStructure | None
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    is_ignorable: bool
    default: Any


def fields_of(structure: AnyStructure) -> tuple[Field, ...]:
    """The fields of a structure in the order of the wire, which is the order of its attributes."""
    found = _fields.get(structure)
    if found is None:
        defaults = structure()
        hints = {
            k: v
            for one in reversed(structure.__mro__)
            for k, v in vars(one).get(_HINTS, {}).items()
        }
        names = structure.__struct_fields__
        found = tuple(_field(name, hints[name], getattr(defaults, name)) for name in names)
        _fields[structure] = found
    return found


_fields: dict[AnyStructure, tuple[Field, ...]] = {}
_HINTS = "__annotations__"


def _field(name: str, hint: Any, default: object) -> Field:
    *given, note = hint.__metadata__
    span, *marks = note.split()
    named = dict(mark.partition("=")[::2] for mark in marks)
    one = hint.__origin__
    is_nullable = not given and type(None) in get_args(one)
    if is_nullable:
        one = get_args(one)[0]
    is_array = getattr(one, "__origin__", None) is list
    if is_array:
        one = get_args(one)[0]
    structure = one if not given and isinstance(one, type) and one not in _KINDS else None
    return Field(
        name=name,
        kind=structure.__name__ if structure else _kind(one, given),
        structure=structure,
        is_array=is_array,
        versions=_versions(span),
        nullable=_versions(named.get("nullable", span)) if is_nullable else NO_VERSIONS,
        tag=int(named["tag"]) if "tag" in named else None,
        is_ignorable="ignorable" in named,
        default=default,
    )


def _kind(one: Any, given: list[str]) -> str:
    """The name of a primitive type, which an alias such as `Int32` carries in its metadata."""
    if given:
        return given[0]
    return one.__metadata__[0] if hasattr(one, "__metadata__") else _KINDS[one]


def _versions(text: str) -> Versions:
    first, separator, last = text.partition("-")
    if separator:
        return Versions(int(first), int(last))
    return Versions(int(text[:-1])) if text.endswith("+") else Versions(int(text), int(text))


def size_min(field: Field, version: int, *, flexible: bool) -> int:
    """The fewest bytes that one value, or one element of an array, takes.

    It bounds how many elements the bytes left can hold, before any is made.
    """
    if field.structure is not None:
        return structure_size_min(field.structure, version, flexible=flexible)
    if field.kind in FIXED_CODES:
        return FIXED_SIZES[FIXED_CODES[field.kind]]
    if flexible:
        return 1
    return 2 if field.kind == "string" else 4


def structure_size_min(structure: AnyStructure, version: int, *, flexible: bool) -> int:
    """The fewest bytes of a structure: its fixed fields, and a length for each of the others."""
    size = 1 if flexible else 0
    for field in fields_of(structure):
        if version not in field.versions or field.tag is not None:
            continue
        if field.is_array:
            size += 1 if flexible else 4
        elif field.structure is not None and version in field.nullable:
            size += 1
        else:
            size += size_min(field, version, flexible=flexible)
    return size
