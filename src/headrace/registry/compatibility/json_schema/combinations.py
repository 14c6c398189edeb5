"""Changes of `allOf`, `anyOf` and `oneOf`: by number of parts, and by pairing them up."""

from headrace.registry.compatibility.json_schema.changes import Change, Differences, found, under
from headrace.registry.compatibility.json_schema.content import Comparer
from headrace.registry.compatibility.json_schema.nodes import Combined, Criterion, Node


def combinations(comparer: Comparer, old: Combined, new: Combined) -> Differences:
    """Match the parts in any order: each old part needs its own new part that can read it."""
    criterion = _criteria(old, new)
    if criterion is Change.COMBINED_TYPE_CHANGED:
        return found(criterion)
    before, after = _distinct(old), _distinct(new)
    differences = () if criterion is None else found(criterion)
    differences += _sizes(old, new, len(before), len(after))
    readable = _readable(comparer, old.criterion, before, after)
    pairs = _matching([list(row) for row in readable])
    for first, second in sorted(pairs.items()):
        differences += readable[first][second]
    if len(pairs) < min(len(before), len(after)):
        differences += found(Change.COMBINED_TYPE_SUBSCHEMAS_CHANGED)
    return differences


def _criteria(old: Combined, new: Combined) -> Change | None:
    if old.criterion is new.criterion:
        return None
    one_before, one_after = len(old.parts) == 1, len(new.parts) == 1
    if (
        new.criterion is Criterion.ANY
        or (one_before and one_after)
        or (one_before and new.criterion is Criterion.ONE)
        or (one_after and old.criterion is Criterion.ALL)
    ):
        return Change.COMBINED_TYPE_EXTENDED
    return Change.COMBINED_TYPE_CHANGED


def _sizes(old: Combined, new: Combined, before: int, after: int) -> Differences:
    if before < after:
        product = new.criterion is Criterion.ALL
        return found(Change.PRODUCT_TYPE_EXTENDED if product else Change.SUM_TYPE_EXTENDED)
    if before > after:
        product = old.criterion is Criterion.ALL
        return found(Change.PRODUCT_TYPE_NARROWED if product else Change.SUM_TYPE_NARROWED)
    return ()


def _distinct(combined: Combined) -> list[Node]:
    return list(dict(zip(combined.texts, combined.parts, strict=True)).values())


def _readable(
    comparer: Comparer, criterion: Criterion, old: list[Node], new: list[Node]
) -> list[dict[int, Differences]]:
    """Return for each old part the new parts that can read it, with their differences."""
    rows: list[dict[int, Differences]] = []
    for index, before in enumerate(old):
        row: dict[int, Differences] = {}
        for position, after in enumerate(new):
            changes = comparer.compare(before, after)
            if comparer.survives(changes):
                row[position] = under((criterion.value, str(index)), changes)
        rows.append(row)
    return rows


def _matching(choices: list[list[int]]) -> dict[int, int]:
    """Return a maximum matching of the parts (augmenting paths)."""
    taken_by: dict[int, int] = {}
    for start in range(len(choices)):
        _augment(start, choices, taken_by)
    return {first: second for second, first in taken_by.items()}


def _augment(start: int, choices: list[list[int]], taken_by: dict[int, int]) -> None:
    """Search breadth first, so that long chains need no stack."""
    came_from: dict[int, int] = {}
    waiting = [start]
    for first in waiting:
        for second in choices[first]:
            if second in came_from:
                continue
            came_from[second] = first
            if second not in taken_by:
                _exchange(second, start, came_from, taken_by)
                return
            waiting.append(taken_by[second])


def _exchange(free: int, start: int, came_from: dict[int, int], taken_by: dict[int, int]) -> None:
    partner_of = {first: second for second, first in taken_by.items()}
    second = free
    while True:
        first = came_from[second]
        taken_by[second] = first
        if first == start:
            return
        second = partner_of[first]
