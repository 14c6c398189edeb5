"""Avro schemas as trees. A name is one node, so a recursive schema is a cycle of nodes.

Nodes compare by identity: all uses of a named type hold the same node.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

MISSING: Final = object()
"""Marks a field without a default, since null is a valid default."""

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)

PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""Further primitives as which readers may read a written primitive."""

Properties = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a type; the namespace may be empty."""

    simple: str
    namespace: str = ""

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple

    @staticmethod
    def of(text: str, namespace: str) -> "Name":
        """Parse a name; a name with dots has its own namespace."""
        before, dot, simple = text.rpartition(".")
        return Name(simple, before if dot else namespace)


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type that is valid for its type."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    properties: Properties = field(default_factory=dict)
    logical: Logical | None = None


@dataclass(slots=True, eq=False)
class Array:
    items: "Node"
    properties: Properties = field(default_factory=dict)
    logical: Logical | None = None
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: "Node"
    properties: Properties = field(default_factory=dict)
    logical: Logical | None = None
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: tuple["Node", ...]
    logical: None = None
    kind: str = "union"


@dataclass(slots=True, eq=False)
class Fixed:
    name: Name
    size: int
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    properties: Properties = field(default_factory=dict)
    logical: Logical | None = None
    kind: str = "fixed"


@dataclass(slots=True, eq=False)
class Enum:
    name: Name
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    properties: Properties = field(default_factory=dict)
    logical: Logical | None = None
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: "Node"
    doc: str | None = None
    default: Any = MISSING
    """The default as JSON in the schema, or `MISSING`."""

    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: Properties = field(default_factory=dict)
    default_fits: bool | None = None
    """Cached result: whether the default is valid for the type; None before the check."""

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(slots=True, eq=False)
class Record:
    name: Name
    fields: tuple[Field, ...] = ()
    """Set when all fields are parsed: they may contain the record itself."""

    doc: str | None = None
    aliases: tuple[Name, ...] = ()
    properties: Properties = field(default_factory=dict)
    is_error: bool = False
    logical: Logical | None = None
    kind: str = "record"


Named = Record | Enum | Fixed
Node = Primitive | Array | Map | Union | Named


def can_read(writer: str, reader: str) -> bool:
    """Return whether values of one kind of primitive can be read as another kind."""
    return writer == reader or reader in PROMOTIONS.get(writer, ())


def branch_name(node: Node) -> str:
    """Return the identity of a union's branch: the full name of a named type, or the kind."""
    return node.name.full if isinstance(node, Record | Enum | Fixed) else node.kind


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below this one."""
    match node:
        case Array():
            yield node.items
        case Map():
            yield node.values
        case Union():
            yield from node.branches
        case Record():
            yield from (field.type for field in node.fields)


def nodes_of(root: Node) -> list[Node]:
    """Return every node once, outer nodes first."""
    found: dict[int, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += reversed(list(children(node)))
    return list(found.values())
