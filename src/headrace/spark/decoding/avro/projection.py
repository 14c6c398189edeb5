"""From the columns of a writer's schema to those of a reader's, where that is plain.

Plain is: the same name, with the same type or one that widens to it, or a default that is null or
a scalar. What else Avro's resolution knows (aliases, unions that do not match) fastavro does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.decoding.avro.schemas import NO_DEFAULT, AvroSchema, Member, Node

Step = Callable[[list[Any], Any], Any]

WIDER: dict[Any, tuple[Any, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


@dataclass(frozen=True, slots=True)
class Projection:
    """For each column of the reader, how it comes from the writer's columns."""

    steps: tuple[Step, ...]

    def rows(self, columns: list[Any], is_here: Any) -> list[Any]:
        """The reader's columns; `is_here` tells which rows have a record at all."""
        return [step(columns, is_here) for step in self.steps]


def projection_of(writer: AvroSchema, reader: AvroSchema) -> Projection | None:
    """The plain way from one to the other, or None if there is none."""
    if not writer.root.is_flat or has_aliases(reader.parsed):
        return None
    places = {field.name: index for index, field in enumerate(writer.root.fields)}
    steps: list[Step] = []
    for field in reader.root.fields:
        index = places.get(field.name)
        step = (
            default_step(field)
            if index is None
            else column_step(index, writer.root.fields[index].node, field.node)
        )
        if step is None:
            return None
        steps.append(step)
    return Projection(tuple(steps))


def column_step(index: int, written: Node, read: Node) -> Step | None:
    if "null" in kinds_of(written) and "null" not in kinds_of(read):
        return None  # A null would have to be refused, row by row.
    if symbols_of(written) != symbols_of(read) or members_of(written) != members_of(read):
        return None
    if written.type == read.type:
        return lambda columns, is_here: columns[index]
    if read.type in WIDER.get(written.type, ()):
        type_ = read.type
        return lambda columns, is_here: pc.cast(columns[index], type_, safe=False)
    return None


def default_step(field: Member) -> Step | None:
    if field.default is NO_DEFAULT or isinstance(field.default, dict | list):
        return None
    if field.default is not None and field.node.logical:
        return None
    type_ = field.node.type
    if field.default is not None and pa.types.is_binary(type_):
        return None  # Written in the schema as text, one character per byte.
    value = pa.scalar(field.default, type_)
    return lambda columns, is_here: pc.if_else(is_here, value, pa.scalar(None, type_))


def kinds_of(node: Node) -> set[str]:
    return {branch.kind for branch in node.branches} if node.kind == "union" else {node.kind}


def symbols_of(node: Node) -> tuple[tuple[str, ...], ...]:
    """The enums within a type: a reader may know other symbols, and is to refuse the rest."""
    inner = [symbols_of(part) for part in node.branches]
    inner += [symbols_of(field.node) for field in node.fields]
    own = (node.symbols,) if node.kind == "enum" else ()
    return tuple(symbols for part in (own, *inner) for symbols in part)


def members_of(node: Node) -> tuple[tuple[tuple[str, str], ...], ...]:
    """What the members of unions within a type are: columns alike may mean other branches."""
    inner = [members_of(part) for part in (*node.branches, *(one.node for one in node.fields))]
    own = (tuple((one.kind, one.name) for one in node.branches),) if node.has_members else ()
    return tuple(members for part in (own, *inner) for members in part)


def has_aliases(parsed: Any) -> bool:
    if isinstance(parsed, dict):
        return "aliases" in parsed or any(has_aliases(value) for value in parsed.values())
    if isinstance(parsed, list):
        return any(has_aliases(value) for value in parsed)
    return False
