"""What Spark's analyser has made of a query, as values: a tree of nodes with their expressions.

Spark writes a plan as JSON, in one call; each tree in it is a list of its nodes from the top, which
say how many children they have. So a rule about plans is a plain function over values.
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
"""What two expressions that mean the same may differ in."""
_PASSING_TEXT = re.compile(r"#\d+|@[0-9a-f]+|__headrace_\d+_|splits=Some\(\d+\)")
"""What differs in the text of a plan each time that it is made, or on another machine."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a plan or an expression; `kind` is the name of Spark's class."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple["Node", ...] = ()

    @property
    def id(self) -> int:
        """By which those above know a column; of an alias and a reference to a column."""
        return int(self.fields["exprId"]["id"])

    def expressions(self, field: str) -> list["Node"]:
        """Those of a field that holds a list of them."""
        return [tree_of(one) for one in self.fields[field]]

    def expression(self, field: str) -> "Node":
        return tree_of(self.fields[field])

    def all(self) -> Iterator["Node"]:
        """The node and all below it."""
        yield self
        for child in self.children:
            yield from child.all()

    def kinds_within(self) -> Iterator[str]:
        """The kinds of all nodes of its expressions, in queries within them too."""
        yield from _kinds(list(self.fields.values()))

    def meaning(self) -> tuple[Any, ...]:
        """The same of expressions that come to the same, however they are called."""
        if self.kind == "AttributeReference":
            return (self.kind, self.id)
        told = {name: value for name, value in self.fields.items() if name not in _PASSING}
        text = json.dumps(told, sort_keys=True)
        return (self.kind, text, *(child.meaning() for child in self.children))


@dataclass(frozen=True, slots=True)
class Plan:
    """A query as Spark has understood it."""

    root: Node
    is_repeatable: bool = True
    """Whether the same rows give the same answer, whenever and however often one asks."""


def plan_of(frame: "DataFrame") -> Plan | None:
    """The plan of a frame; None over Spark Connect, which shows no plans."""
    if is_connect(frame.sparkSession):
        return None
    analyzed = frame._jdf.queryExecution().analyzed()
    return Plan(tree_of(json.loads(analyzed.toJSON())), is_repeatable(frame))


def plan_text(frame: "DataFrame") -> str:
    """The plan of a query without what differs each time; nothing over Spark Connect."""
    if is_connect(frame.sparkSession):
        return ""
    return _PASSING_TEXT.sub("", frame._jdf.queryExecution().analyzed().toString())


def is_repeatable(frame: "DataFrame") -> bool:
    """Whether nothing in a query is of chance or of the moment; Spark Connect does not tell."""
    if is_connect(frame.sparkSession):
        return True
    analyzed = frame._jdf.queryExecution().analyzed()
    jvm: Any = frame.sparkSession._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    asks_the_clock = analyzed.containsPattern(catalyst.trees.TreePattern.CURRENT_LIKE())
    return bool(analyzed.deterministic()) and not asks_the_clock


def _kinds(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield str(value.get("class", "")).rpartition(".")[2]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _kinds(one)


def tree_of(listed: Sequence[Mapping[str, Any]]) -> Node:
    """The tree that Spark has written as a list, from the top."""
    node, _ = _tree(listed, 0)
    return node


def _tree(listed: Sequence[Mapping[str, Any]], at: int) -> tuple[Node, int]:
    """The tree that begins at a place of the list, and where the next one does."""
    written = listed[at]
    kind = str(written["class"]).rpartition(".")[2]
    fields = {k: v for k, v in written.items() if k not in ("class", "num-children")}
    children, at = [], at + 1
    for _ in range(written["num-children"]):
        child, at = _tree(listed, at)
        children.append(child)
    return Node(kind, fields, tuple(children)), at
