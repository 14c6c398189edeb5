"""An Avro schema as a short program for compiled code.

The parts of a record come in a fixed order, so a schema without arrays and maps is a list of steps;
a union is a jump. A slot holds one part of all rows: an integer, the bits of a double, or the start
of bytes.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.serdes.avro.model import Enum, Fixed, Node, Record, Union
from headrace.spark.decoding.avro.column_types import branch_types
from headrace.spark.decoding.columns.failures import Failures
from headrace.spark.decoding.ddl import ddl_of

# Steps. Each is (step, argument, slot).
READ_BOOLEAN = 0
READ_INT = 1
READ_LONG = 2
READ_FLOAT = 3
READ_DOUBLE = 4
READ_BYTES = 5
READ_FIXED = 6
"""Its argument is the size."""
READ_ENUM = 7
"""Its argument is the number of symbols."""
READ_UNION = 8
"""Its argument is the index of its branches among the jumps."""
JUMP = 9
"""Its argument is the next step."""
MARK = 10
"""Marks the slot of a record as valid."""

STEPS = {
    "boolean": READ_BOOLEAN,
    "int": READ_INT,
    "long": READ_LONG,
    "float": READ_FLOAT,
    "double": READ_DOUBLE,
    "bytes": READ_BYTES,
    "string": READ_BYTES,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """The place for the values of a part of a schema."""

    number: int
    node: Node
    type: Any
    """The Arrow type of its column."""

    children: tuple["Slot", ...] = ()


@dataclass(slots=True)
class Program:
    """Builds the steps for a schema."""

    failures: Failures
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    slot_count: int = 0

    def record(self, node: Record, type_: Any, path: str) -> Slot:
        number = self.new_slot(path, type_)
        self.steps.append((MARK, 0, number))
        children = tuple(
            self.value(part.type, column.type, f"{path}{part.name}")
            for part, column in zip(node.fields, type_, strict=True)
        )
        return Slot(number, node, type_, children)

    def value(self, node: Node, type_: Any, path: str) -> Slot:
        match node:
            case Record():
                return self.record(node, type_, f"{path}.")
            case Union():
                return self.union(node, type_, path)
        number = self.new_slot(path, type_)
        match node:
            case Fixed():
                self.steps.append((READ_FIXED, node.size, number))
            case Enum():
                self.steps.append((READ_ENUM, len(node.symbols), number))
            case _ if node.kind != "null":
                self.steps.append((STEPS[node.kind], 0, number))
        return Slot(number, node, type_)

    def union(self, node: Union, type_: Any, path: str) -> Slot:
        """Give each branch its own slots, at most one of which is valid in a row."""
        number = self.new_slot(path, type_)
        begin = len(self.jumps)
        self.jumps.extend([len(node.branches)] + [0] * len(node.branches))
        self.steps.append((READ_UNION, begin, number))
        children = []
        ends = []
        types = branch_types(node, type_)
        for index, (branch, branch_type) in enumerate(zip(node.branches, types, strict=True)):
            self.jumps[begin + 1 + index] = len(self.steps)
            children.append(self.value(branch, branch_type, path))
            ends.append(len(self.steps))
            self.steps.append((JUMP, 0, number))
        for end in ends:
            self.steps[end] = (JUMP, len(self.steps), number)
        return Slot(number, node, type_, tuple(children))

    def new_slot(self, path: str, type_: Any) -> int:
        self.failures.column(path.removesuffix("."), ddl_of(type_))
        self.slot_count += 1
        return self.slot_count - 1

    def arrays(self) -> tuple[Any, Any]:
        """Return the steps and jumps for compiled code."""
        steps = np.array(self.steps, np.int64).reshape(-1, 3)
        return steps, np.array(self.jumps or [0], np.int64)
