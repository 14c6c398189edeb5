"""The statements of a .proto file, as written except for comments and layout.

Descriptors lose information that Confluent's registry keeps: whether a type's name was written in
full, the form of options, and whether a map was written as `map<K, V>` or as its entry message.
Keeping it gives the same text for a schema as that registry.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

NUMBER_MAX = 536_870_911
"""The highest field number, written `max` at the end of a range."""

ENUM_NUMBER_MAX = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string; it may contain bytes that are not UTF-8."""

    value: bytes


@dataclass(frozen=True, slots=True)
class Word:
    """A number, a boolean or the name of an enum's constant, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values."""

    values: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A message as a value. A key is a field's name, or `[full.name]` of an extension."""

    pairs: tuple[tuple[str, "Value"], ...]


Value: TypeAlias = Quoted | Word | Items | Fields


@dataclass(frozen=True, slots=True)
class Option:
    """An option and its value. The name is as written, such as `(shop.rule).level`."""

    name: str
    value: Value

    @property
    def is_custom(self) -> bool:
        return self.name.startswith("(")


Range: TypeAlias = tuple[int, int]
"""First and last number, inclusive."""


@dataclass(frozen=True, slots=True)
class Reserved:
    values: tuple[Range | Quoted | Word, ...]
    """Numbers and names. A name is a string, or in editions a word."""


@dataclass(frozen=True, slots=True)
class Extensions:
    ranges: tuple[Range, ...]
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field. `map<K, V>` is used as a type name."""

    label: str | None
    type: str
    name: str
    number: int
    options: tuple[Option, ...] = ()
    """Options with `default` and `json_name` last."""

    group: "Message | None" = None
    """The message of a group, which has the group's name."""


@dataclass(frozen=True, slots=True)
class OneOf:
    name: str
    fields: tuple[Field, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    number: int
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    constants: tuple[Constant, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    visibility: str = ""
    """`export` or `local`, in edition 2024."""


@dataclass(frozen=True, slots=True)
class Extend:
    name: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    messages: tuple["Message", ...] = ()
    enums: tuple[Enum, ...] = ()
    options: tuple[Option, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    extends: tuple[Extend, ...] = ()
    visibility: str = ""

    @property
    def is_map_entry(self) -> bool:
        return Option("map_entry", Word("true")) in self.options


@dataclass(frozen=True, slots=True)
class Rpc:
    name: str
    request: str
    response: str
    is_request_streamed: bool = False
    is_response_streamed: bool = False
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Import:
    name: str
    kind: str = ""
    """`public`, `weak`, `option` or empty."""


@dataclass(frozen=True, slots=True)
class File:
    """A whole .proto file. At most one of `syntax` and `edition` is set."""

    syntax: str = ""
    edition: str = ""
    package: str = ""
    imports: tuple[Import, ...] = ()
    options: tuple[Option, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[Service, ...] = ()


def map_entries(file: File) -> Iterator[tuple[str, Message]]:
    """Yield entry messages written out instead of `map<K, V>`, by their full names."""
    yield from entries_of(file.messages, file.package)


def entries_of(messages: tuple[Message, ...], scope: str) -> Iterator[tuple[str, Message]]:
    for message in messages:
        name = f"{scope}.{message.name}" if scope else message.name
        if message.is_map_entry:
            yield name, message
        yield from entries_of(message.messages, name)
