"""A .proto file without its extensions, or without the options that they define."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.serdes.protobuf.elements import (
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Message,
    OneOf,
    Option,
    Rpc,
    Service,
)

META = "confluent/meta.proto"
META_PREFIX = "(confluent."
META_PREFIX_IN_FULL = "(.confluent."


def without_extensions(file: File) -> File:
    """Without what extends messages, and without options that are not Protobuf's or Confluent's."""
    return Pruning(known, has_extensions=False).file(file)


def without_custom_options(file: File) -> File:
    """Without options that are not Protobuf's or Confluent's, which are then named in full.

    In a package such as `io.confluent`, protoc would else look for them there alone.
    """
    return Pruning(known_in_full, has_extensions=True).file(file)


def uses_meta(file: File) -> bool:
    """Whether an option is one of those that Confluent's own file defines."""
    seen: list[Option] = []

    def note(option: Option) -> Option:
        seen.append(option)
        return option

    Pruning(note, has_extensions=True).file(file)
    return any(is_of_meta(option) for option in seen)


def is_of_meta(option: Option) -> bool:
    return option.name.startswith((META_PREFIX, META_PREFIX_IN_FULL))


def known(option: Option) -> Option | None:
    return option if not option.is_custom or is_of_meta(option) else None


def known_in_full(option: Option) -> Option | None:
    if not option.name.startswith(META_PREFIX):
        return known(option)
    return replace(option, name=META_PREFIX_IN_FULL + option.name.removeprefix(META_PREFIX))


@dataclass(frozen=True, slots=True)
class Pruning:
    """Walks over a file and asks of each option what stays of it."""

    kept: Callable[[Option], Option | None]
    has_extensions: bool

    def file(self, file: File) -> File:
        return replace(
            file,
            options=self.options(file.options),
            messages=tuple(map(self.message, file.messages)),
            enums=tuple(map(self.enum, file.enums)),
            extends=self.extends(file.extends),
            services=tuple(map(self.service, file.services)),
        )

    def message(self, message: Message) -> Message:
        return replace(
            message,
            options=self.options(message.options),
            fields=self.fields(message.fields),
            oneofs=tuple(map(self.oneof, message.oneofs)),
            messages=tuple(map(self.message, message.messages)),
            enums=tuple(map(self.enum, message.enums)),
            extensions=self.extensions(message.extensions),
            extends=self.extends(message.extends),
        )

    def extensions(self, extensions: tuple[Extensions, ...]) -> tuple[Extensions, ...]:
        if not self.has_extensions:
            return ()
        return tuple(replace(found, options=self.options(found.options)) for found in extensions)

    def extends(self, extends: tuple[Extend, ...]) -> tuple[Extend, ...]:
        if not self.has_extensions:
            return ()
        return tuple(replace(found, fields=self.fields(found.fields)) for found in extends)

    def oneof(self, oneof: OneOf) -> OneOf:
        return replace(oneof, options=self.options(oneof.options), fields=self.fields(oneof.fields))

    def fields(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        return tuple(
            replace(
                field,
                options=self.options(field.options),
                group=None if field.group is None else self.message(field.group),
            )
            for field in fields
        )

    def enum(self, enum: Enum) -> Enum:
        return replace(
            enum,
            options=self.options(enum.options),
            constants=tuple(
                replace(constant, options=self.options(constant.options))
                for constant in enum.constants
            ),
        )

    def service(self, service: Service) -> Service:
        return replace(
            service,
            options=self.options(service.options),
            rpcs=tuple(map(self.rpc, service.rpcs)),
        )

    def rpc(self, rpc: Rpc) -> Rpc:
        return replace(rpc, options=self.options(rpc.options))

    def options(self, options: tuple[Option, ...]) -> tuple[Option, ...]:
        return tuple(kept for option in options if (kept := self.kept(option)) is not None)
