"""Spark's analysed plans as values: trees of nodes with their expressions.

Spark writes a plan as JSON in one call; each tree is a list of nodes from the top, with the number
of their children. So a rule about plans is a plain function over values.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PASSING = frozenset(("exprId", "resultId", "qualifier", "metadata", "explicitMetadata"))
"""Fields that may differ between equal expressions."""
_PASSING_TEXT = re.compile(r"#\d+|@[0-9a-f]+|__headrace_\d+_|splits=Some\(\d+\)")
"""Text of a plan that differs between runs or machines."""
_STATEFUL = frozenset(
    (
        *("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct"),
        *("FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"),
        *("TransformWithState", "TransformWithStateInPySpark", "GlobalLimit"),
    )
)
"""Streaming operators that keep state from batch to batch."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a plan or an expression; `kind` is the name of Spark's class."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple["Node", ...] = ()

    @property
    def id(self) -> int:
        """The id of a column, in an alias and in references to it."""
        return int(self.fields["exprId"]["id"])

    def expressions(self, field: str) -> list["Node"]:
        """Return the expressions of a field that holds a list."""
        return [tree_of(one) for one in self.fields[field]]

    def expression(self, field: str) -> "Node":
        return tree_of(self.fields[field])

    def all(self) -> Iterator["Node"]:
        """Yield the node and all below it."""
        yield self
        for child in self.children:
            yield from child.all()

    def kinds_within(self) -> Iterator[str]:
        """Yield the kinds of all nodes in its expressions, subqueries included."""
        yield from _kinds(list(self.fields.values()))

    def meaning(self) -> tuple[Any, ...]:
        """Return a value that is equal for equal expressions, whatever their names."""
        if self.kind == "AttributeReference":
            return (self.kind, self.id)
        known = {name: value for name, value in self.fields.items() if name not in _PASSING}
        text = json.dumps(known, sort_keys=True)
        return (self.kind, text, *(child.meaning() for child in self.children))


@dataclass(frozen=True, slots=True)
class Plan:
    """A query as analysed by Spark."""

    root: Node
    is_repeatable: bool = True
    """True if the same rows always give the same result."""


def plan_of(frame: "DataFrame") -> Plan | None:
    """Return the plan of a frame; None over Spark Connect, which shows no plans."""
    if is_connect(frame.sparkSession):
        return None
    analyzed = frame._jdf.queryExecution().analyzed()
    return Plan(tree_of(json.loads(analyzed.toJSON())), is_repeatable(frame))


def plan_text(frame: "DataFrame") -> str:
    """Return the plan of a query without its unstable parts; empty over Spark Connect."""
    if is_connect(frame.sparkSession):
        return ""
    return _PASSING_TEXT.sub("", frame._jdf.queryExecution().analyzed().toString())


def is_repeatable(frame: "DataFrame") -> bool:
    """Return whether a query uses no time or random numbers; True over Spark Connect."""
    if is_connect(frame.sparkSession):
        return True
    analyzed = frame._jdf.queryExecution().analyzed()
    jvm: Any = frame.sparkSession._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    asks_the_clock = analyzed.containsPattern(catalyst.trees.TreePattern.CURRENT_LIKE())
    return bool(analyzed.deterministic()) and not asks_the_clock


def keeps_state(frame: "DataFrame") -> bool:
    """Return whether a streaming query keeps state: totals, joins of streams, each key once.

    Its rows come from several records, so running the query again on some of the records would give
    wrong rows. Spark Connect shows no plan: False.
    """
    if is_connect(frame.sparkSession):
        return False
    return _keeps_state(frame._jdf.queryExecution().analyzed())


def _keeps_state(node: Any) -> bool:
    if not node.isStreaming():
        return False  # A result of static tables does not depend on the records.
    children = [node.children().apply(number) for number in range(node.children().size())]
    kind = node.getClass().getSimpleName()
    is_join = kind == "Join" and all(child.isStreaming() for child in children)
    return kind in _STATEFUL or is_join or any(map(_keeps_state, children))


def _kinds(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield str(value.get("class", "")).rpartition(".")[2]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _kinds(one)


def tree_of(listed: Sequence[Mapping[str, Any]]) -> Node:
    """Return the tree that Spark wrote as a list, from the top."""
    node, _ = _tree(listed, 0)
    return node


def _tree(listed: Sequence[Mapping[str, Any]], at: int) -> tuple[Node, int]:
    """Return the tree at a position of the list, and the position after it."""
    written = listed[at]
    kind = str(written["class"]).rpartition(".")[2]
    fields = {k: v for k, v in written.items() if k not in ("class", "num-children")}
    children, at = [], at + 1
    for _ in range(written["num-children"]):
        child, at = _tree(listed, at)
        children.append(child)
    return Node(kind, fields, tuple(children)), at
