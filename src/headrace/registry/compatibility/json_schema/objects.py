"""Changes of objects: properties, and the content model, which governs further properties.

A model is open if it allows any further property, closed if it allows none, and partially open if a
schema or patterns describe further properties. Data of an open model may already have the new
property of a reader with another type, so adding a property breaks the reader.
"""

from functools import lru_cache

import jsonschema_rs

from headrace.registry.compatibility.json_schema.changes import Change, Differences, found, under
from headrace.registry.compatibility.json_schema.content import (
    Comparer,
    additional,
    covered,
    unevaluated,
)
from headrace.registry.compatibility.json_schema.nodes import Anything, Node, Nothing, Object
from headrace.registry.compatibility.json_schema.scalars import bound


def objects(comparer: Comparer, old: Object, new: Object) -> Differences:
    return (
        under(("required",), _required(old, new))
        + under(("properties",), _properties(comparer, old, new))
        + under(("dependencies",), _dependencies(comparer, old, new))
        + additional(comparer, "additionalProperties", old.additional, new.additional)
        + unevaluated(comparer, "unevaluatedProperties", old.unevaluated, new.unevaluated)
        + bound("maxProperties", "MAX_PROPERTIES", old.properties_max, new.properties_max)
        + bound("minProperties", "MIN_PROPERTIES", old.properties_min, new.properties_min)
    )


def _required(old: Object, new: Object) -> Differences:
    differences: Differences = ()
    for name in sorted(old.properties.keys() & new.properties.keys()):
        if name in old.required and name not in new.required:
            differences += found(Change.REQUIRED_ATTRIBUTE_REMOVED, name)
        elif name in new.required and name not in old.required:
            has_default = new.properties[name].about.has_default
            differences += found(
                Change.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED
                if has_default
                else Change.REQUIRED_ATTRIBUTE_ADDED,
                name,
            )
    return differences


def _properties(comparer: Comparer, old: Object, new: Object) -> Differences:
    differences: Differences = ()
    for name in sorted(old.properties.keys() | new.properties.keys()):
        before, after = old.properties.get(name), new.properties.get(name)
        if before is not None and after is not None:
            changes = comparer.compare(before, after)
        elif before is not None:
            changes = _removed(comparer, name, before, new)
        else:
            assert after is not None
            changes = _added(comparer, name, after, old, new)
        differences += under((name,), changes)
    return differences


def _removed(comparer: Comparer, name: str, before: Node, new: Object) -> Differences:
    """Judge a removed property by the reader's content model."""
    if _is_open(new):
        return found(Change.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL)
    rest = _schema_of_further(new, name)
    if rest is not None:
        return covered(comparer, "PROPERTY_REMOVED", before, rest)
    if isinstance(before, Nothing):
        return found(Change.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL)
    return found(Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL)


def _added(comparer: Comparer, name: str, after: Node, old: Object, new: Object) -> Differences:
    """Judge a new property by the writer's content model."""
    if _is_open(old):
        if isinstance(after, Anything):
            return found(Change.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL)
        return found(Change[f"{_need(name, new)}_ADDED_TO_OPEN_CONTENT_MODEL"])
    rest = _schema_of_further(old, name)
    changes = () if rest is None else covered(comparer, "PROPERTY_ADDED", rest, after)
    return changes + found(Change[f"{_need(name, new)}_ADDED_TO_UNOPEN_CONTENT_MODEL"])


def _need(name: str, schema: Object) -> str:
    if name not in schema.required:
        return "OPTIONAL_PROPERTY"
    has_default = schema.properties[name].about.has_default
    return "REQUIRED_PROPERTY_WITH_DEFAULT" if has_default else "REQUIRED_PROPERTY"


def _dependencies(comparer: Comparer, old: Object, new: Object) -> Differences:
    differences: Differences = ()
    for name in sorted(old.needed_with.keys() | new.needed_with.keys()):
        before, after = old.needed_with.get(name), new.needed_with.get(name)
        differences += under((name,), _names(before, after))
    for name in sorted(old.schemas_with.keys() | new.schemas_with.keys()):
        was, now = old.schemas_with.get(name), new.schemas_with.get(name)
        differences += under((name,), _schemas(comparer, was, now))
    return differences


def _names(old: frozenset[str] | None, new: frozenset[str] | None) -> Differences:
    if old == new:
        return ()
    if old is None or new is None:
        step = "ADDED" if old is None else "REMOVED"
    elif old < new:
        step = "EXTENDED"
    else:
        step = "NARROWED" if old > new else "CHANGED"
    return found(Change[f"DEPENDENCY_ARRAY_{step}"])


def _schemas(comparer: Comparer, old: Node | None, new: Node | None) -> Differences:
    if old is None or new is None:
        return found(
            Change.DEPENDENCY_SCHEMA_ADDED if old is None else Change.DEPENDENCY_SCHEMA_REMOVED
        )
    return comparer.compare(old, new)


def _is_open(schema: Object) -> bool:
    if schema.additional is not True or schema.patterns:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, Anything)


def _schema_of_further(schema: Object, name: str) -> Node | None:
    """Return the schema of a property that a partially open model does not name."""
    for pattern, node in schema.patterns.items():
        if _matches(pattern, name):
            return node
    if not isinstance(schema.additional, bool):
        return schema.additional
    if schema.additional and not isinstance(schema.unevaluated, Nothing | Anything):
        return schema.unevaluated
    return None


@lru_cache(maxsize=1000)
def _matches(pattern: str, name: str) -> bool:
    """Match by the validator's engine: it has the right dialect, and aborts slow patterns."""
    return jsonschema_rs.Draft7Validator({"pattern": pattern}).is_valid(name)
