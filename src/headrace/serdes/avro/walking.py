"""Walks through a payload without making values of it, to find what would harm who decodes it.

Two things in five bytes can: an array that claims a hundred million items of no bytes each, and a
record within itself a hundred thousand times, which ends a process whose decoder calls itself.
Only payloads of schemas that allow one of them are walked through.
"""

from typing import Final

from headrace.serdes.avro.errors import CorruptPayload
from headrace.serdes.avro.model import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    children,
    nodes_of,
)

NESTING_MAX: Final = 500
"""Types within types in one value."""

SAFE_BYTES: Final = 250
"""Each record within itself takes a byte, so a payload as short as this cannot nest too deep."""

EMPTY_ITEMS_MAX: Final = 100_000
"""Items that take no bytes, in one payload."""

VARINT_BYTES_MAX: Final = 10
WIDTHS: Final = {"boolean": 1, "float": 4, "double": 8}


class Danger:
    """What a payload of a schema could do to its decoder."""

    def __init__(self, root: Node) -> None:
        nodes = nodes_of(root)
        self._root = root
        self._is_recursive = any(_reaches(node, node) for node in nodes if isinstance(node, Record))
        self._has_empty_items = any(
            isinstance(node, Array) and takes_no_bytes(node.items) for node in nodes
        )
        self._endless = next((node for node in nodes if is_endless(node)), None)

    def check(self, payload: bytes | memoryview) -> None:
        """Raise `CorruptPayload` if decoding this would harm."""
        if self._endless is not None:
            raise CorruptPayload(f"{self._endless.kind} holds itself always, so it has no values")
        if self._has_empty_items or (self._is_recursive and len(payload) > SAFE_BYTES):
            walk(self._root, payload)


def walk(root: Node, payload: bytes | memoryview, position: int = 0) -> int:
    """Where the value ends that begins here."""
    walker = _Walker(payload, position)
    try:
        walker.skip(root, 0)
    except IndexError:
        raise CorruptPayload("the payload ends within a value") from None
    return walker.position


class _Walker:
    def __init__(self, payload: bytes | memoryview, position: int) -> None:
        self.position = position
        self._payload = payload
        self._empty_items = 0

    def skip(self, node: Node, depth: int) -> None:
        if depth > NESTING_MAX:
            raise CorruptPayload(f"values nest more than {NESTING_MAX} deep")
        match node:
            case Primitive():
                self._skip_primitive(node.kind)
            case Fixed():
                self._advance(node.size)
            case Enum():
                self._number()
            case Union():
                branch = self._number()
                if not 0 <= branch < len(node.branches):
                    raise CorruptPayload(f"a union has no branch {branch}")
                self.skip(node.branches[branch], depth + 1)
            case Record():
                for field in node.fields:
                    self.skip(field.type, depth + 1)
            case Array():
                self._skip_blocks(node.items, depth, has_keys=False)
            case Map():
                self._skip_blocks(node.values, depth, has_keys=True)

    def _skip_primitive(self, kind: str) -> None:
        if kind in ("int", "long"):
            self._number()
        elif kind in ("bytes", "string"):
            self._advance(self._number())
        else:
            self._advance(WIDTHS.get(kind, 0))

    def _skip_blocks(self, node: Node, depth: int, *, has_keys: bool) -> None:
        while (count := self._number()) != 0:
            if count < 0:
                count = -count
                self._number()  # The size in bytes, which a hostile payload may have wrong.
            if not has_keys and takes_no_bytes(node):
                self._count_empty(count)
                continue
            for _ in range(count):
                if has_keys:
                    self._advance(self._number())
                self.skip(node, depth + 1)

    def _count_empty(self, count: int) -> None:
        self._empty_items += count
        if self._empty_items > EMPTY_ITEMS_MAX:
            raise CorruptPayload(f"more than {EMPTY_ITEMS_MAX} items take no bytes")

    def _advance(self, size: int) -> None:
        if not 0 <= size <= len(self._payload) - self.position:
            raise CorruptPayload(f"a value of {size} bytes does not fit the payload")
        self.position += size

    def _number(self) -> int:
        number = shift = 0
        for position in range(self.position, self.position + VARINT_BYTES_MAX):
            byte = self._payload[position]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                self.position = position + 1
                return (number >> 1) ^ -(number & 1)
        raise CorruptPayload("a number has more bytes than a long")


def takes_no_bytes(node: Node, within: frozenset[int] = frozenset()) -> bool:
    """Whether every value of this type is written as nothing."""
    match node:
        case Primitive():
            return node.kind == "null"
        case Fixed():
            return node.size == 0
        case Record():
            inner = within | {id(node)}
            return id(node) not in within and all(
                takes_no_bytes(field.type, inner) for field in node.fields
            )
    return False


def is_endless(node: Node, within: frozenset[int] = frozenset()) -> bool:
    """Whether a record holds itself with no union, array or map in between."""
    if not isinstance(node, Record):
        return False
    inner = within | {id(node)}
    return id(node) in within or any(is_endless(field.type, inner) for field in node.fields)


def _reaches(start: Node, target: Node) -> bool:
    return any(node is target for child in children(start) for node in nodes_of(child))
