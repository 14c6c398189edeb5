"""Annotations for what Python types cannot express: names, numbers and sizes in a schema."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Class = TypeVar("Class", bound=type)

NAME = "__schema_name__"
ALIASES = "__schema_aliases__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Extra facts of a field or a type, in `Annotated[int, Wire(kind="int32")]`.

    `kind` selects one of several schema types for a Python type: `int32`, `float32`,
    `timestamp-millis`, `time-millis`, `uint32`, `sint64` and so on. `precision` and `scale` are the
    digits of a decimal. `name` is the field's name in data, `aliases` its former names (Avro),
    `number` and `oneof` its place in a Protobuf message.
    """

    name: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    number: int | None = None
    oneof: str | None = None
    kind: str | None = None
    precision: int | None = None
    scale: int = 0


def named(name: str, *, aliases: tuple[str, ...] = ()) -> Callable[[Class], Class]:
    """Set the name of a class in its schema, which may have a namespace: `com.acme.Order`."""

    def mark(cls: Class) -> Class:
        setattr(cls, NAME, name)
        setattr(cls, ALIASES, aliases)
        return cls

    return mark
