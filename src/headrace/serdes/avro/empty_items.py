"""Scans payloads for arrays that claim too many empty items, without creating values.

An array of items without bytes, such as nulls, can claim a hundred million of them in five bytes.
Only payloads of schemas with such an array are scanned.
"""

from typing import Final

from headrace.serdes.avro.model import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    nodes_of,
)
from headrace.serdes.payload_errors import CorruptPayload
from headrace.serdes.varints import varint_at

EMPTY_ITEMS_MAX: Final = 100_000
"""Limit of items without bytes in one payload."""

WIDTHS: Final = {"boolean": 1, "float": 4, "double": 8}


class EmptyItems:
    """Checks payloads of schemas that can have masses of values without bytes."""

    def __init__(self, root: Node) -> None:
        nodes = nodes_of(root)
        self._root = root
        self._sizes: dict[int, int] = {}
        self._is_huge = any(parts_of_nothing(n, self._sizes) > EMPTY_ITEMS_MAX for n in nodes)
        self._are_possible = any(
            isinstance(node, Array) and takes_no_bytes(node.items) for node in nodes
        )

    def check(self, payload: bytes, position: int = 0) -> None:
        """Raise `CorruptPayload` if the value at this position claims too many."""
        if self._is_huge:
            raise CorruptPayload(f"a value of this schema has more than {EMPTY_ITEMS_MAX} parts")
        if self._are_possible:
            walk(self._root, payload, position)


def parts_of_nothing(node: Node, known: dict[int, int]) -> int:
    """Return the number of values that a type creates without any byte, such as nested records."""
    if id(node) not in known:
        known[id(node)] = 1 if node.kind == "null" else 0  # A record within itself adds nothing.
        if isinstance(node, Record):
            known[id(node)] = 1 + sum(parts_of_nothing(field.type, known) for field in node.fields)
    return known[id(node)]


def walk(root: Node, payload: bytes, position: int = 0) -> int:
    """Return the end of the value at a position."""
    walker = _Walker(payload, position)
    try:
        walker.skip(root)
    except IndexError:
        raise CorruptPayload("the payload ends within a value") from None
    except (ValueError, RecursionError) as error:
        raise CorruptPayload(f"the payload does not fit its schema: {error}") from None
    return walker.position


class _Walker:
    def __init__(self, payload: bytes, position: int) -> None:
        self.position = position
        self._payload = payload
        self._empty_items = 0

    def skip(self, node: Node) -> None:
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
                self.skip(node.branches[branch])
            case Record():
                for field in node.fields:
                    self.skip(field.type)
            case Array():
                self._skip_blocks(node.items, has_keys=False)
            case Map():
                self._skip_blocks(node.values, has_keys=True)

    def _skip_primitive(self, kind: str) -> None:
        if kind in ("int", "long"):
            self._number()
        elif kind in ("bytes", "string"):
            self._advance(self._number())
        else:
            self._advance(WIDTHS.get(kind, 0))

    def _skip_blocks(self, node: Node, *, has_keys: bool) -> None:
        while (count := self._number()) != 0:
            if count < 0:
                count = -count
                self._number()  # The size in bytes; a hostile payload may lie.
            if not has_keys and takes_no_bytes(node):
                self._count_empty(count * max(1, parts_of_nothing(node, {})))
                continue
            for _ in range(count):
                if has_keys:
                    self._advance(self._number())
                self.skip(node)

    def _count_empty(self, count: int) -> None:
        self._empty_items += count
        if self._empty_items > EMPTY_ITEMS_MAX:
            raise CorruptPayload(f"more than {EMPTY_ITEMS_MAX} items take no bytes")

    def _advance(self, size: int) -> None:
        if not 0 <= size <= len(self._payload) - self.position:
            raise CorruptPayload(f"a value of {size} bytes does not fit the payload")
        self.position += size

    def _number(self) -> int:
        number, self.position = varint_at(self._payload, self.position)
        return number


def takes_no_bytes(node: Node) -> bool:
    """Return whether every value of this type is encoded as no bytes."""
    return _takes_no_bytes(node, {})


def _takes_no_bytes(node: Node, known: dict[int, bool]) -> bool:
    match node:
        case Primitive():
            return node.kind == "null"
        case Fixed():
            return node.size == 0
        case Record():
            if id(node) not in known:
                known[id(node)] = False  # A record that always contains itself has no values.
                known[id(node)] = all(_takes_no_bytes(field.type, known) for field in node.fields)
            return known[id(node)]
    return False
