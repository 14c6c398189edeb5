"""Classes that tests make schemas from: one order in three flavours."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import msgspec
import pydantic

from headrace.serdes.classes import Wire, named

Sku = NewType("Sku", str)


class Color(Enum):
    """Colors that we print."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 0
    HIGH = 5


@dataclass
class Line:
    sku: Sku
    count: Annotated[int, Wire(kind="int32")] = 1


@named("com.acme.Order", aliases=("com.acme.Purchase",))
@dataclass
class Order:
    """An order of a customer."""

    id: UUID
    price: Annotated[Decimal, Wire(precision=10, scale=2, doc="In euros.")]
    parent: "Order | None" = None
    lines: list[Line] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=lambda: {"a": "b"})
    placed: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    day: date = date(1970, 1, 11)
    at: time = time(0, 0, 1)
    raw: bytes = b"\x00\xff"
    state: Literal["new", "done"] = "new"
    color: Color = Color.BLUE
    level: Level = Level.HIGH
    what: int | str | None = "x"
    best: Line = field(default_factory=lambda: Line(Sku("s")))
    owner: Annotated[str, Wire(name="from", aliases=("since",))] = ""


@dataclass
class WithMetadata:
    number: int = field(metadata={"name": "no", "doc": "Its number.", "kind": "ignored here"})


class Model(pydantic.BaseModel):
    """A model."""

    id: int = pydantic.Field(alias="key", description="The key.")
    tags: list[str] = []
    made: UUID = pydantic.Field(default_factory=lambda: UUID(int=msgspec_counter()))


_made = 0


def msgspec_counter() -> int:
    """Return a new number on every call, as for ids."""
    global _made
    _made += 1
    return _made


class Struct(msgspec.Struct, rename="camel"):
    first_name: Annotated[str, msgspec.Meta(description="As in the passport.")]
    last_name: str = "Doe"
    wait: timedelta | None = None


@dataclass
class Node:
    value: int
    children: list["Node"] = field(default_factory=list)


@dataclass
class Payment:
    """Money."""

    amount: Decimal
    at: datetime
    color: Color
    level: Level
    state: Literal["new", "done"]
    lines: list[Line] = field(default_factory=list)
    by: dict[int, Line] = field(default_factory=dict)
    note: Annotated[str | None, Wire(doc="A note.", number=20)] = None
    card: Annotated[str | None, Wire(oneof="means")] = None
    cash: Annotated[int | None, Wire(oneof="means")] = None
    count: Annotated[int, Wire(kind="uint32")] = 0
    wait: timedelta | None = None
    more: Any = None
