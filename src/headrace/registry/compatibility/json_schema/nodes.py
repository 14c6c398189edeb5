"""The model of a schema for the rules of compatibility: one node per kind of value.

JSON Schema allows any combination of keywords. The rules have strings, numbers, objects and so on;
a schema with several kinds is a product (`allOf`) of such nodes. Nodes are compared by identity: a
definition that is used twice is one node, even a recursive one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

ABSENT: Any = object()
"""The default of a schema without one; `null` is a valid default."""

Quantity: TypeAlias = int | Decimal


@dataclass(frozen=True, slots=True)
class About:
    """The annotations of a schema of any kind."""

    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: Any = ABSENT
    connect_type: str | None = None
    """Kafka Connect's own type; its converters have changed the encoding of some."""

    @property
    def has_default(self) -> bool:
        return self.default is not ABSENT


@dataclass(slots=True, eq=False)
class Anything:
    """`true` and `{}`."""

    about: About = About()


@dataclass(slots=True, eq=False)
class Nothing:
    """`false`."""

    about: About = About()


@dataclass(slots=True, eq=False)
class Boolean:
    about: About = About()


@dataclass(slots=True, eq=False)
class Null:
    about: About = About()


@dataclass(slots=True, eq=False, kw_only=True)
class Text:
    about: About = About()
    length_max: int | None = None
    length_min: int | None = None
    pattern: str | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Number:
    about: About = About()
    is_integer: bool = False
    maximum: Quantity | None = None
    minimum: Quantity | None = None
    exclusive_maximum: Quantity | None = None
    exclusive_minimum: Quantity | None = None
    multiple_of: Quantity | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Object:
    about: About = About()
    properties: dict[str, "Node"] = field(default_factory=dict)
    patterns: dict[str, "Node"] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    properties_max: int | None = None
    properties_min: int | None = None
    additional: "bool | Node" = True
    unevaluated: "Node | None" = None
    needed_with: dict[str, frozenset[str]] = field(default_factory=dict)
    schemas_with: dict[str, "Node"] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class Array:
    about: About = About()
    every_item: "Node | None" = None
    items: "list[Node]" = field(default_factory=list)
    additional: "bool | Node" = True
    unevaluated: "Node | None" = None
    items_max: int | None = None
    items_min: int | None = None
    contains_max: int | None = None
    contains_min: int | None = None
    is_unique: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class Values:
    """`enum`: the values as texts, equal for equal values."""

    about: About = About()
    values: frozenset[str]


@dataclass(slots=True, eq=False, kw_only=True)
class Constant:
    about: About = About()
    value: str


@dataclass(slots=True, eq=False, kw_only=True)
class Negation:
    about: About = About()
    refused: "Node"


@dataclass(slots=True, eq=False, kw_only=True)
class Conditional:
    """`if`, `then`, `else`: a kind of its own; the rules ignore its parts."""

    about: About = About()


class Criterion(Enum):
    """The number of parts that a value of a combined schema must match."""

    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


@dataclass(slots=True, eq=False, kw_only=True)
class Combined:
    about: About = About()
    criterion: Criterion
    parts: "list[Node]"
    texts: list[str]
    """The source of each part, so that repeated parts are counted once."""


@dataclass(slots=True, eq=False, kw_only=True)
class Reference:
    """A reference, resolved on use, because definitions may be recursive."""

    about: About = About()
    find: "Callable[[], Node]"
    target: "Node | None" = None

    def resolve(self) -> "Node":
        if self.target is None:
            self.target = self.find()
        return self.target


Node: TypeAlias = (
    Anything
    | Nothing
    | Boolean
    | Null
    | Text
    | Number
    | Object
    | Array
    | Values
    | Constant
    | Negation
    | Conditional
    | Combined
    | Reference
)
