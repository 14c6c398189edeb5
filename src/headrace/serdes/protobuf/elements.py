"""The statements of a .proto file, as they were written but for comments and layout.

Descriptors are not enough for a registry: they know neither whether a type's name was written in
full, nor what an option looked like, nor whether a map was written as `map<K, V>` or as the entry
message that it stands for. Confluent's registry keeps all of this, and so the text that both give
for a schema is the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

NUMBER_MAX = 536_870_911
"""The highest number of a field, written `max` at the end of a range."""

ENUM_NUMBER_MAX = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string; it may hold bytes that are no UTF-8."""

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
"""First and last number, both included."""


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
    """A field. `map<K, V>` is a type's name here."""

    label: str | None
    type: str
    name: str
    number: int
    options: tuple[Option, ...] = ()
    """With `default` and `json_name` last."""

    group: "Message | None" = None
    """What a group holds; its name is the group's."""


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
    """`export` or `local`, of which edition 2024 knows."""


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
    """`public`, `weak`, `option` or nothing."""


@dataclass(frozen=True, slots=True)
class File:
    """A whole .proto file. One of `syntax` and `edition` may be given, or none."""

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
    """The entry messages that are written out instead of `map<K, V>`, by their full names."""
    yield from entries_of(file.messages, file.package)


def entries_of(messages: tuple[Message, ...], scope: str) -> Iterator[tuple[str, Message]]:
    for message in messages:
        name = f"{scope}.{message.name}" if scope else message.name
        if message.is_map_entry:
            yield name, message
        yield from entries_of(message.messages, name)
