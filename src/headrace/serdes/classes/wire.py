"""How a class says what its types cannot: names, numbers and sizes that a schema knows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Class = TypeVar("Class", bound=type)

NAME = "__schema_name__"
ALIASES = "__schema_aliases__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """More about a field or a type, in `Annotated[int, Wire(kind="int32")]`.

    `kind` is a type of the schema where Python has one for several: `int32`, `float32`,
    `timestamp-millis`, `time-millis`, `uint32`, `sint64` and so on. `precision` and `scale` are
    the digits of a decimal. `name` is the field's name in data, `aliases` its former names (Avro),
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
    """Give a class the name that its schema has: with a namespace, as in `com.acme.Order`."""

    def mark(cls: Class) -> Class:
        setattr(cls, NAME, name)
        setattr(cls, ALIASES, aliases)
        return cls

    return mark
