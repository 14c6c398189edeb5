"""Where schemas stand within schemas, so that a walk takes no `default` or `enum` for one."""

from collections.abc import Iterator
from typing import Any

from headrace.serdes.json_schema.drafts import Schema

# A map of names to schemas. `dependencies` holds lists of names, too; those are no schemas.
_MAPS = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
_MIXED_MAPS = ("dependencies",)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLES = (
    *("additionalItems", "additionalProperties", "not", "if", "then", "else", "contains"),
    *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_SINGLE_OR_LIST = "items"

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def subschemas(schema: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Each schema directly inside of a schema, with its path from there."""
    if isinstance(schema, bool):
        return
    for keyword, value in schema.items():
        for path, inner in _held_by(keyword, value):
            if isinstance(inner, bool | dict):
                yield (keyword, *path), inner


def _held_by(keyword: str, value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if keyword in _SINGLES:
        yield (), value
    elif keyword in _MAPS or keyword in _MIXED_MAPS:
        yield from (((name,), inner) for name, inner in _items(value))
    elif keyword in _LISTS or (keyword == _SINGLE_OR_LIST and isinstance(value, list)):
        yield from (((str(index),), inner) for index, inner in enumerate(_list(value)))
    elif keyword == _SINGLE_OR_LIST:
        yield (), value


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
