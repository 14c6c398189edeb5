"""An Avro schema as a short program for compiled code: what to read next, and into which slot.

Records are read in a fixed order, so a schema without arrays and maps is a list of steps; a union
is a jump. A slot holds one part of all rows: an integer, a double's bits, or where bytes lie.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.spark.decoding.avro.schemas import Node
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
"""The argument is its size."""
READ_ENUM = 7
"""The argument is the number of symbols."""
READ_UNION = 8
"""The argument is where its branches begin in the jumps."""
JUMP = 9
"""The argument is the step to go on with."""
MARK = 10
"""A record is here: its slot becomes valid."""

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
    """Where the values of a part of a schema are put."""

    number: int
    node: Node
    children: tuple["Slot", ...] = ()


@dataclass(slots=True)
class Program:
    """Steps being written for a schema."""

    failures: Failures
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    slot_count: int = 0

    def record(self, node: Node, path: str) -> Slot:
        number = self.new_slot(path, node)
        self.steps.append((MARK, 0, number))
        children = tuple(self.value(part.node, f"{path}{part.name}") for part in node.fields)
        return Slot(number, node, children)

    def value(self, node: Node, path: str) -> Slot:
        match node.kind:
            case "record":
                return self.record(node, f"{path}.")
            case "union":
                return self.union(node, path)
        number = self.new_slot(path, node)
        self.read(node, number)
        return Slot(number, node)

    def read(self, node: Node, number: int) -> None:
        match node.kind:
            case "null":
                return
            case "fixed":
                self.steps.append((READ_FIXED, node.size, number))
            case "enum":
                self.steps.append((READ_ENUM, len(node.symbols), number))
            case _:
                self.steps.append((STEPS[node.kind], 0, number))

    def union(self, node: Node, path: str) -> Slot:
        """Its branches, each with slots of its own; at most one of them is valid in a row."""
        number = self.new_slot(path, node)
        begin = len(self.jumps)
        self.jumps.extend([len(node.branches)] + [0] * len(node.branches))
        self.steps.append((READ_UNION, begin, number))
        children = []
        ends = []
        for index, branch in enumerate(node.branches):
            self.jumps[begin + 1 + index] = len(self.steps)
            children.append(self.value(branch, path))
            ends.append(len(self.steps))
            self.steps.append((JUMP, 0, number))
        for end in ends:
            self.steps[end] = (JUMP, len(self.steps), number)
        return Slot(number, node, tuple(children))

    def new_slot(self, path: str, node: Node) -> int:
        self.failures.column(path.removesuffix("."), ddl_of(node.type))
        self.slot_count += 1
        return self.slot_count - 1

    def arrays(self) -> tuple[Any, Any]:
        """The steps and the jumps as compiled code takes them."""
        steps = np.array(self.steps, np.int64).reshape(-1, 3)
        return steps, np.array(self.jumps or [0], np.int64)
