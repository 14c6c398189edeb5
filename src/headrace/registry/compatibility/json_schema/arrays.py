"""Changes of arrays: the schema of all items, of the first items, and of further items."""

from headrace.registry.compatibility.json_schema.changes import Change, Differences, found, under
from headrace.registry.compatibility.json_schema.content import (
    Comparer,
    additional,
    covered,
    unevaluated,
)
from headrace.registry.compatibility.json_schema.nodes import Anything, Array, Node, Nothing
from headrace.registry.compatibility.json_schema.scalars import bound


def arrays(comparer: Comparer, old: Array, new: Array) -> Differences:
    return (
        under(("items",), comparer.compare(old.every_item, new.every_item))
        + _first_items(comparer, old, new)
        + additional(comparer, "additionalItems", old.additional, new.additional)
        + unevaluated(comparer, "unevaluatedItems", old.unevaluated, new.unevaluated)
        + bound("maxItems", "MAX_ITEMS", old.items_max, new.items_max)
        + bound("minItems", "MIN_ITEMS", old.items_min, new.items_min)
        + _unique(was=old.is_unique, now=new.is_unique)
        + bound("maxContains", "MAX_CONTAINS", old.contains_max, new.contains_max)
        + bound("minContains", "MIN_CONTAINS", old.contains_min, new.contains_min)
    )


def _first_items(comparer: Comparer, old: Array, new: Array) -> Differences:
    differences: Differences = ()
    for index in range(max(len(old.items), len(new.items))):
        if index >= len(new.items):
            changes = _removed(comparer, old.items[index], new)
        elif index >= len(old.items):
            changes = _added(comparer, new.items[index], old)
        else:
            changes = comparer.compare(old.items[index], new.items[index])
        differences += under(("items", str(index)), changes)
    return differences


def _removed(comparer: Comparer, before: Node, new: Array) -> Differences:
    if _is_open(new):
        return found(Change.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL)
    rest = _schema_of_further(new)
    if rest is not None:
        return covered(comparer, "ITEM_REMOVED", before, rest)
    if isinstance(before, Nothing):
        return found(Change.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL)
    return found(Change.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL)


def _added(comparer: Comparer, after: Node, old: Array) -> Differences:
    if _is_open(old):
        if isinstance(after, Anything):
            return found(Change.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL)
        return found(Change.ITEM_ADDED_TO_OPEN_CONTENT_MODEL)
    rest = _schema_of_further(old)
    if rest is not None:
        return covered(comparer, "ITEM_ADDED", rest, after)
    return found(Change.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL)


def _unique(*, was: bool, now: bool) -> Differences:
    if was == now:
        return ()
    return found(Change.UNIQUE_ITEMS_REMOVED if was else Change.UNIQUE_ITEMS_ADDED, "uniqueItems")


def _is_open(schema: Array) -> bool:
    if schema.additional is not True:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, Anything)


def _schema_of_further(schema: Array) -> Node | None:
    if not isinstance(schema.additional, bool):
        return schema.additional
    if schema.additional and not isinstance(schema.unevaluated, Nothing | Anything):
        return schema.unevaluated
    return None
