"""Normalizes equivalent files to one form, as Confluent's registry does.

Names are written in full, options are sorted and merged, fields and constants are sorted by number.
Messages keep their order: payloads identify them by index.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from headrace.serdes.protobuf.cursor import whole_number
from headrace.serdes.protobuf.elements import (
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Fields,
    File,
    Import,
    Items,
    Message,
    OneOf,
    Option,
    Quoted,
    Reserved,
    Rpc,
    Service,
    Value,
    Word,
)
from headrace.serdes.protobuf.maps import with_map_types
from headrace.serdes.protobuf.names import Names, resolve, within
from headrace.serdes.protobuf.printing import value_text
from headrace.serdes.protobuf.reading_options import together

MAP_TYPE = re.compile(r"map<(\S+), (\S+)>")
OPTION_PART = re.compile(r"\([^)]*\)|[^.()]+")

NAME_PLACE = 1 << 31
"""Sorts reserved names after all reserved numbers."""


def normalize(file: File, names: Names) -> File:
    """Return the file in normal form, given the names of the file and its imports."""
    file = with_map_types(file)
    scope = file.package
    form = Form(names)
    return replace(
        file,
        syntax=file.syntax if file.syntax == "proto3" else "",
        imports=tuple(sorted(set(file.imports), key=import_place)),
        options=form.options(file.options, scope),
        messages=tuple(form.message(found, scope) for found in file.messages),
        enums=tuple(form.enum(found, scope) for found in file.enums),
        extends=form.extends(file.extends, scope),
        services=tuple(form.service(found, scope) for found in file.services),
    )


def import_place(found: Import) -> tuple[str, str]:
    return found.kind, found.name


@dataclass(frozen=True, slots=True)
class Form:
    """Converts statements to normal form, given the names they can see."""

    names: Names

    def message(self, message: Message, scope: str) -> Message:
        scope = within(scope, message.name)
        return replace(
            message,
            fields=self.fields(message.fields, scope),
            oneofs=tuple(
                sorted(
                    (self.oneof(found, scope) for found in message.oneofs if found.fields),
                    key=lambda found: found.fields[0].number,
                )
            ),
            messages=tuple(self.message(found, scope) for found in message.messages),
            enums=tuple(self.enum(found, scope) for found in message.enums),
            options=self.options(message.options, scope),
            reserved=reserved_one_by_one(message.reserved),
            extensions=self.extensions(message.extensions, scope),
            extends=self.extends(message.extends, scope),
        )

    def oneof(self, oneof: OneOf, scope: str) -> OneOf:
        return replace(
            oneof,
            fields=self.fields(oneof.fields, scope),
            options=self.options(oneof.options, scope),
        )

    def fields(self, fields: Iterable[Field], scope: str) -> tuple[Field, ...]:
        made = (self.field(found, scope) for found in fields)
        return tuple(sorted(made, key=lambda found: found.number))

    def field(self, field: Field, scope: str) -> Field:
        return replace(
            field,
            type=self.type(field.type, scope),
            options=self.options(field.options, scope),
            group=None if field.group is None else self.message(field.group, scope),
        )

    def type(self, name: str, scope: str) -> str:
        """Return a type's full name with a leading dot; scalar types have no scope and stay."""
        found = MAP_TYPE.fullmatch(name)
        if found is not None:
            return f"map<{found[1]}, {self.type(found[2], scope)}>"
        full_name = resolve(name, scope, self.names.types)
        return name if full_name is None else f".{full_name}"

    def extensions(self, extensions: Iterable[Extensions], scope: str) -> tuple[Extensions, ...]:
        made = [
            Extensions((numbers,), self.options(found.options, scope))
            for found in extensions
            for numbers in found.ranges
        ]
        return tuple(sorted(made, key=lambda found: found.ranges))

    def extends(self, extends: Iterable[Extend], scope: str) -> tuple[Extend, ...]:
        by_name: dict[str, list[Field]] = {}
        for extend in extends:
            by_name.setdefault(self.type(extend.name, scope), []).extend(extend.fields)
        return tuple(Extend(name, self.fields(fields, scope)) for name, fields in by_name.items())

    def enum(self, enum: Enum, scope: str) -> Enum:
        scope = within(scope, enum.name)
        constants = (
            replace(found, options=self.options(found.options, scope)) for found in enum.constants
        )
        return replace(
            enum,
            constants=tuple(sorted(constants, key=constant_place(enum))),
            options=self.options(enum.options, scope),
            reserved=reserved_one_by_one(enum.reserved),
        )

    def service(self, service: Service, scope: str) -> Service:
        return replace(
            service,
            rpcs=tuple(self.rpc(found, scope) for found in service.rpcs),
            options=self.options(service.options, scope),
        )

    def rpc(self, rpc: Rpc, scope: str) -> Rpc:
        return replace(
            rpc,
            request=self.type(rpc.request, scope),
            response=self.type(rpc.response, scope),
            options=self.options(rpc.options, scope),
        )

    # Options.

    def options(self, options: Iterable[Option], scope: str) -> tuple[Option, ...]:
        """Sort options by name, and merge options set in parts into one message."""
        by_root: dict[str, list[Value]] = {}
        for option in options:
            root, *path = OPTION_PART.findall(option.name)
            root = self.option_name(root, scope)
            value = at_path([self.key(part, scope) for part in path], self.value(option.value))
            known = by_root.setdefault(root, [])
            if path and known and isinstance(known[-1], Fields) and isinstance(value, Fields):
                known[-1] = merged(known[-1], value)
            else:
                known.append(value)
        return tuple(
            Option(root, in_order(value)) for root in sorted(by_root, key=bare) for value in
            self.spread(root, by_root[root])
        )  # fmt: skip

    def spread(self, root: str, values: list[Value]) -> list[Value]:
        """Split a repeated option, which may be set with a list or several times."""
        if not self.names.extensions.get(bare(root), False):
            return values
        return [
            one
            for value in values
            for one in (value.values if isinstance(value, Items) else (value,))
        ]

    def option_name(self, name: str, scope: str) -> str:
        if not name.startswith("("):
            return name
        return f"({resolve(bare(name), scope, self.names.extensions) or bare(name)})"

    def key(self, part: str, scope: str) -> str:
        if not part.startswith("("):
            return part
        return f"[{resolve(bare(part), scope, self.names.extensions) or bare(part)}]"

    def value(self, value: Value) -> Value:
        match value:
            case Word(text):
                return Word(number_text(text))
            case Items(values):
                return Items(tuple(map(self.value, values)))
            case Fields(pairs):
                return Fields(tuple((key, self.value(found)) for key, found in pairs))
            case Quoted():
                return value


def constant_place(enum: Enum) -> Callable[[Constant], tuple[bool, int, str]]:
    """Sort constants by number and name, those with the default's number first.

    Confluent's registry sorts lower numbers before it, which makes a proto3 schema invalid.
    """
    default = enum.constants[0].number if enum.constants else 0
    return lambda found: (found.number != default, found.number, found.name)


def bare(name: str) -> str:
    return name.strip("()").removeprefix(".")


def at_path(path: list[str], value: Value) -> Value:
    for key in reversed(path):
        value = Fields(((key, value),))
    return value


def merged(known: Fields, added: Fields) -> Fields:
    """Merge two messages. protoc allows a repeated key only for repeated fields."""
    pairs = dict(known.pairs)
    for key, value in added.pairs:
        before = pairs.get(key)
        if before is None:
            pairs[key] = value
        elif isinstance(before, Fields) and isinstance(value, Fields):
            pairs[key] = merged(before, value)
        else:
            pairs[key] = together([before, value])
    return Fields(tuple(pairs.items()))


def in_order(value: Value) -> Value:
    """Sort keys, drop empty lists, and unwrap lists of one value."""
    match value:
        case Fields(pairs):
            kept = [(key, in_order(found)) for key, found in pairs if found != Items(())]
            return Fields(tuple(sorted(kept, key=lambda pair: pair[0])))
        case Items((only,)):
            return in_order(only)
        case Items(values):
            return Items(tuple(map(in_order, values)))
        case _:
            return value


def number_text(text: str) -> str:
    """Format a number in its shortest decimal form; other words are unchanged."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    if not digits[:1].isdigit() and digits[:1] != ".":
        return text
    try:
        return f"{sign}{whole_number(digits)}"
    except ValueError:
        pass
    try:
        number = float(digits.rstrip("fF"))
    except ValueError:
        return text
    return f"{sign}{int(number)}" if number.is_integer() and number < 1e15 else f"{sign}{number!r}"


def reserved_one_by_one(reserved: Iterable[Reserved]) -> tuple[Reserved, ...]:
    values = {value for found in reserved for value in found.values}
    return tuple(
        Reserved((value,))
        for value in sorted(
            values,
            key=lambda value: (
                (value[0], "") if isinstance(value, tuple) else (NAME_PLACE, value_text(value))
            ),
        )
    )
