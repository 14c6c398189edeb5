"""The comparison of two JSON Schemas.

Schemas may be recursive. When a reference leads to a new pair of schemas, the pair is assumed to be
compatible and compared later. If that proves wrong, its users are compared again, until no verdict
changes: the greatest fixed point. Parts without references are a tree of bounded depth and are
compared at once.
"""

from collections import deque
from typing import TypeAlias

from headrace.registry.compatibility.incompatibilities import (
    Direction,
    Incompatibility,
    TooComplex,
    described,
)
from headrace.registry.compatibility.json_schema import changes, scalars
from headrace.registry.compatibility.json_schema.arrays import arrays
from headrace.registry.compatibility.json_schema.changes import Change, Differences, found, under
from headrace.registry.compatibility.json_schema.combinations import combinations
from headrace.registry.compatibility.json_schema.nodes import (
    Anything,
    Array,
    Combined,
    Constant,
    Criterion,
    Negation,
    Node,
    Nothing,
    Number,
    Object,
    Reference,
    Text,
    Values,
)
from headrace.registry.compatibility.json_schema.objects import objects
from headrace.registry.compatibility.json_schema.reading import read
from headrace.registry.compatibility.levels import Policy
from headrace.serdes.json_schema.parsing import JsonSchema

PAIRS_MAX = 100_000
"""The maximum of compared pairs of parts, one or two seconds of work: the number for two `oneOf` is
the product of their sizes."""

DIFFERENCES_MAX = 50
"""Differences kept per pair: those of a shared definition count for each of its uses."""

REFERENCES_MAX = 100
"""The maximum of references to references before a schema."""


Pair: TypeAlias = tuple[int, int]
"""Two nodes by identity. A comparison holds its nodes, so no identity is used twice."""


def incompatibilities(
    reader: JsonSchema,
    writer: JsonSchema,
    direction: Direction = Direction.BACKWARD,
    *,
    policy: Policy = Policy.STRICT,
) -> list[Incompatibility]:
    """Return why data valid by `writer` cannot be read with `reader`; nothing if it can be read."""
    try:
        every = differences(reader, writer, policy=policy)
    except TooComplex as error:
        return [error.incompatibility(direction)]
    broken = dict.fromkeys(each for each in every if each.change not in _survived(policy))
    return [
        described(each.change.name, changes.DESCRIPTIONS, each.pointer, direction)
        for each in broken
    ]


def differences(
    reader: JsonSchema, writer: JsonSchema, *, policy: Policy = Policy.STRICT
) -> Differences:
    """Return all differences, breaking or not."""
    return _Comparison(_survived(policy)).run(read(writer), read(reader))


def _survived(policy: Policy) -> frozenset[Change]:
    return changes.LENIENT if policy is Policy.LENIENT else changes.STRICT


class _Comparison:
    """Verdicts about pairs of schemas, and the pairs that rely on them."""

    def __init__(self, survived: frozenset[Change]) -> None:
        self._survived = survived
        self._left = PAIRS_MAX
        self._nodes: dict[Pair, tuple[Node, Node]] = {}
        self._results: dict[Pair, Differences] = {}
        self._users: dict[Pair, set[Pair]] = {}
        self._waiting: deque[Pair] = deque()
        self._current: Pair | None = None

    def run(self, old: Node, new: Node) -> Differences:
        root = self._pair(old, new)
        while self._waiting:
            pair = self._waiting.popleft()
            was_broken = self._is_broken(pair)
            self._evaluate(pair)
            if self._is_broken(pair) != was_broken:
                self._waiting.extend(self._users[pair])
        if len(self._nodes) > 1:
            # The verdicts are final. Evaluate all pairs again, the last one first, so that the
            # differences of a pair include all those of its parts.
            for pair in reversed(self._nodes):
                self._evaluate(pair)
        return self._results[root]

    def survives(self, differences: Differences) -> bool:
        return all(each.change in self._survived for each in differences)

    def compare(self, old: Node | None, new: Node | None) -> Differences:
        if old is None:
            return () if new is None else found(Change.SCHEMA_ADDED)
        if new is None:
            return found(Change.SCHEMA_REMOVED)
        self._count()
        if not isinstance(old, Reference) and not isinstance(new, Reference):
            return self._kinds(old, new)
        pair = self._pair(old, new)
        if self._current is not None:
            self._users[pair].add(self._current)
        return self._results[pair]

    def _pair(self, old: Node, new: Node) -> Pair:
        """Return a pair reached by references; a new pair is assumed to be compatible."""
        nodes = _resolved(old), _resolved(new)
        pair = (id(nodes[0]), id(nodes[1]))
        if pair not in self._nodes:
            self._nodes[pair] = nodes
            self._results[pair] = ()
            self._users[pair] = set()
            self._waiting.append(pair)
        return pair

    def _evaluate(self, pair: Pair) -> None:
        self._current = pair
        result = self._kinds(*self._nodes[pair])
        if len(result) > DIFFERENCES_MAX:
            broken = tuple(each for each in result if each.change not in self._survived)
            result = (broken or result)[:DIFFERENCES_MAX]
        self._results[pair] = result

    def _is_broken(self, pair: Pair) -> bool:
        return not self.survives(self._results[pair])

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooComplex(
                f"The schemas were not compared to the end: more than {PAIRS_MAX} pairs of their "
                "parts would have to be. Make oneOf, anyOf and allOf shorter"
            )

    def _kinds(self, old: Node, new: Node) -> Differences:
        """Compare a combined schema with a single one, which may match one of its parts."""
        if isinstance(new, Combined) and not isinstance(old, Combined):
            shortcut = self._widened(old, new)
        elif isinstance(old, Combined) and not isinstance(new, Combined):
            shortcut = self._reduced(old, new)
        else:
            shortcut = None
        return self._alike(old, new) if shortcut is None else shortcut

    def _widened(self, old: Node, new: Combined) -> Differences | None:
        if len(new.parts) > 1 and new.criterion is Criterion.ALL:
            return None
        for part in new.parts:
            result = self.compare(old, part)
            if self.survives(result):
                return result if len(new.parts) == 1 else result + found(Change.SUM_TYPE_EXTENDED)
        return None

    def _reduced(self, old: Combined, new: Node) -> Differences | None:
        if len(old.parts) > 1 and old.criterion is not Criterion.ALL:
            return None
        for part in old.parts:
            result = self.compare(part, new)
            if self.survives(result):
                one = len(old.parts) == 1
                return result if one else result + found(Change.PRODUCT_TYPE_NARROWED)
        return None

    def _alike(self, old: Node, new: Node) -> Differences:
        if type(old) is not type(new):
            return _changed_type(old, new)
        return _about(old, new) + self._within(old, new)

    def _within(self, old: Node, new: Node) -> Differences:
        match old, new:
            case Text(), Text():
                return scalars.texts(old, new)
            case Number(), Number():
                return scalars.numbers(old, new)
            case Values(), Values():
                return scalars.values(old, new)
            case Constant(), Constant():
                return scalars.constants(old, new)
            case Combined(), Combined():
                return combinations(self, old, new)
            case Negation(), Negation():
                return self._negations(old, new)
            case Object(), Object():
                return objects(self, old, new)
            case Array(), Array():
                return arrays(self, old, new)
            case _:
                return ()

    def _negations(self, old: Negation, new: Negation) -> Differences:
        """Compare negations with the sides swapped: a reader may exclude less than the writer."""
        refuses_less = self.survives(self.compare(new.refused, old.refused))
        change = Change.NOT_TYPE_NARROWED if refuses_less else Change.NOT_TYPE_EXTENDED
        return under(("not",), found(change))


def _resolved(node: Node) -> Node:
    for _ in range(REFERENCES_MAX):
        if not isinstance(node, Reference):
            return node
        node = node.resolve()
    raise TooComplex(
        f"The schemas were not compared: a reference leads to {REFERENCES_MAX} others and no schema"
    )


def _changed_type(old: Node, new: Node) -> Differences:
    if isinstance(old, Nothing) or isinstance(new, Anything):
        return ()
    if old.about.connect_type == new.about.connect_type == "bytes":
        # Connect's converter has written decimals both as strings and as numbers; it reads both
        # as bytes.
        return ()
    return found(Change.TYPE_CHANGED)


def _about(old: Node, new: Node) -> Differences:
    before, after = old.about, new.about
    pairs = (
        (Change.ID_CHANGED, before.id, after.id),
        (Change.TITLE_CHANGED, before.title, after.title),
        (Change.DESCRIPTION_CHANGED, before.description, after.description),
        (Change.DEFAULT_CHANGED, before.default, after.default),
    )
    return tuple(each for change, was, now in pairs if was != now for each in found(change))
