"""Projection of a writer's columns to a reader's, whole columns at a time.

It applies to columns with the same name whose type is equal or widens, and to defaults that are
null or scalars. The rest of Avro's resolution (aliases, different unions) works row by row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.serdes.avro.model import (
    Array,
    Enum,
    Field,
    Map,
    Named,
    Node,
    Record,
    Union,
    branch_name,
    children,
    nodes_of,
)
from headrace.spark.decoding.avro.column_types import has_members

Step = Callable[[list[Any], Any], Any]

WIDER: dict[Any, tuple[Any, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


PLAIN_DEFAULTS = frozenset(
    (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string())
)
"""Types whose values are the same in a schema's JSON and in a column."""


@dataclass(frozen=True, slots=True)
class Projection:
    """A step for each column of the reader."""

    steps: tuple[Step, ...]

    def rows(self, columns: list[Any], is_here: Any) -> list[Any]:
        """Return the reader's columns; `is_here` marks the rows that have a record at all."""
        return [step(columns, is_here) for step in self.steps]


def projection_of(writer: Record, reader: Record, written: Any, wanted: Any) -> Projection | None:
    """Return the projection between two roots with these Arrow schemas, or None."""
    if not is_flat(writer) or has_aliases(reader):
        return None
    places = {field.name: index for index, field in enumerate(writer.fields)}
    steps: list[Step] = []
    for field, column in zip(reader.fields, wanted, strict=True):
        index = places.get(field.name)
        step = (
            _default_step(field, column.type)
            if index is None
            else _column_step(
                index, writer.fields[index].type, written[index].type, field.type, column.type
            )
        )
        if step is None:
            return None
        steps.append(step)
    return Projection(tuple(steps))


def is_flat(node: Node, within: tuple[Node, ...] = ()) -> bool:
    """Return whether a value has a fixed number of parts, so that each can have its own column."""
    if isinstance(node, Array | Map) or node in within:
        return False
    return all(is_flat(child, (*within, node)) for child in children(node))


def has_aliases(root: Node) -> bool:
    """Return whether any type or field has another name as well."""
    return any(
        isinstance(node, Named)
        and (node.aliases or (isinstance(node, Record) and any(one.aliases for one in node.fields)))
        for node in nodes_of(root)
    )


def _column_step(index: int, writer: Node, written: Any, reader: Node, wanted: Any) -> Step | None:
    if "null" in _kinds(writer) and "null" not in _kinds(reader):
        return None  # A null would have to be rejected, row by row.
    if not is_flat(reader) or list(_meanings(writer)) != list(_meanings(reader)):
        return None
    if written == wanted:
        return lambda columns, is_here: columns[index]
    if wanted in WIDER.get(written, ()):
        return lambda columns, is_here: pc.cast(columns[index], wanted, safe=False)
    return None


def _default_step(field: Field, type_: Any) -> Step | None:
    if not field.has_default or isinstance(field.default, dict | list):
        return None
    if field.default is not None and type_ not in PLAIN_DEFAULTS:
        return None
    try:
        value = pa.scalar(field.default, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None  # A default of another type, which makes its rows bad.
    return lambda columns, is_here: pc.if_else(is_here, value, pa.scalar(None, type_))


def _kinds(node: Node) -> set[str]:
    return {branch.kind for branch in node.branches} if isinstance(node, Union) else {node.kind}


def _meanings(node: Node) -> Iterator[tuple[str, ...]]:
    """Yield the possible differences of columns of one type: symbols of enums, members of unions.

    A reader's enum rejects symbols that it lacks; a member may be another branch.
    """
    if isinstance(node, Enum):
        yield node.symbols
    elif isinstance(node, Union) and has_members(node):
        yield tuple(map(branch_name, node.branches))
    for child in children(node):
        yield from _meanings(child)
