"""The fields of JSON objects by their schema. Tags stand at a property as `confluent:tags`."""

from typing import Any

from headrace.serdes.json_schema.parsing import JsonSchema
from headrace.serdes.json_schema.references import Place
from headrace.serdes.rules.fields import TAGS_PROPERTY, FieldFacts, Visit

_COMBINED = ("oneOf", "anyOf", "allOf")
_DEPTH_MAX = 200
_TYPE_NAMES = {bool: "BOOLEAN", int: "LONG", float: "DOUBLE", str: "STRING", bytes: "BYTES"}


def visit_json_schema_fields(schema: JsonSchema, value: Any, visit: Visit) -> Any:
    return _Walk(schema, visit).through(schema.documents.root, value, "$", 0)


class _Walk:
    """A walk through a value along all schemas that may hold for it."""

    def __init__(self, schema: JsonSchema, visit: Visit) -> None:
        self._schema = schema
        self._visit = visit

    def through(self, place: Place, value: Any, path: str, depth: int) -> Any:
        schema = place.schema
        if not isinstance(schema, dict) or depth > _DEPTH_MAX:
            return value
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = self._schema.documents.resolve(reference, place.base)
            value = self.through(target, value, path, depth + 1)
        for keyword in _COMBINED:
            for inner in schema.get(keyword) or ():
                value = self.through(place.inner(inner), value, path, depth + 1)
        if isinstance(value, dict):
            return self._object(place, schema, value, path, depth)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, dict):
            return [self.through(place.inner(items), one, path, depth + 1) for one in value]
        return value

    def _object(
        self, place: Place, schema: dict[str, Any], value: dict[str, Any], path: str, depth: int
    ) -> dict[str, Any]:
        known = schema.get("properties") or {}
        return value | {
            name: self._property(place.inner(known[name]), value[name], path, name, depth)
            for name in known
            if name in value
        }

    def _property(self, place: Place, value: Any, path: str, name: str, depth: int) -> Any:
        type_name = _TYPE_NAMES.get(type(value))
        if type_name is None:
            return self.through(place, value, f"{path}.{name}", depth + 1)
        schema = place.schema
        tags = schema.get(TAGS_PROPERTY) if isinstance(schema, dict) else None
        facts = FieldFacts(f"{path}.{name}", name, type_name, frozenset(tags or ()))
        return self._visit(facts, value)
