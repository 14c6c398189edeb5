"""The field tables of messages, read into objects that the codec compiles from."""

import sys
from typing import Any, TypeAlias

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
"""The types of one width, with the code by which `struct` knows them."""

FIXED_SIZES = {"?": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}


class Versions(msgspec.Struct, frozen=True):
    """An inclusive range of versions, without an end unless one is given."""

    first: int
    last: int = sys.maxsize

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NO_VERSIONS = Versions(1, 0)


class Field(msgspec.Struct, frozen=True):
    """One row of a table: what stands on the wire, and when."""

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
        rows = (row.split() for row in structure.FIELDS.splitlines())
        found = tuple(_parse(row, structure, defaults) for row in rows if row)
        _fields[structure] = found
    return found


_fields: dict[AnyStructure, tuple[Field, ...]] = {}


def _parse(row: list[str], owner: AnyStructure, defaults: object) -> Field:
    name, kind, span, *notes = row
    named = dict(note.partition("=")[::2] for note in notes)
    element = kind.removeprefix("[]")
    return Field(
        name=name,
        kind=element,
        structure=getattr(sys.modules[owner.__module__], element, None),
        is_array=kind != element,
        versions=_versions(span),
        nullable=_versions(named["nullable"] or span) if "nullable" in named else NO_VERSIONS,
        tag=int(named["tag"]) if "tag" in named else None,
        is_ignorable="ignorable" in named,
        default=getattr(defaults, name),
    )


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
