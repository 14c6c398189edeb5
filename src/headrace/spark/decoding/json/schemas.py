"""The columns of a JSON Schema, for payloads with a schema in a registry."""

import json
from typing import Any

import pyarrow as pa

from headrace.spark.decoding.ddl import DEPTH_MAX, TIMESTAMP
from headrace.spark.decoding.errors import InvalidSchema

SIMPLE: dict[str, Any] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
FORMATS: dict[str, Any] = {"date-time": TIMESTAMP, "date": pa.date32()}


def columns_of_json_schema(text: str) -> Any:
    """Return the Arrow schema of the objects that a JSON Schema describes."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the JSON Schema cannot be read: {error}") from error
    type_ = type_of(document, document, 0)
    if not pa.types.is_struct(type_) or type_.num_fields == 0:
        raise InvalidSchema(
            "the JSON Schema does not describe an object with properties; give the columns by the"
            " option schema, such as `id BIGINT, name STRING`"
        )
    return pa.schema(list(type_))


def type_of(schema: Any, document: Any, depth: int) -> Any:
    """Return the type of a subschema; one with several types or none is a string, as written."""
    schema = followed(schema, document)
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return pa.string()
    for word in ("oneOf", "anyOf"):
        branches = [part for part in schema.get(word, ()) if not is_null(part)]
        if len(branches) == 1:
            return type_of(branches[0], document, depth + 1)
    names = schema.get("type")
    kinds = [name for name in (names if isinstance(names, list) else [names]) if name != "null"]
    kind = kinds[0] if len(kinds) == 1 else None
    if kind == "object":
        return object_type(schema, document, depth)
    if kind == "array":
        item = type_of(schema.get("items"), document, depth + 1)
        return pa.list_(pa.field("element", item))
    if kind == "string":
        return FORMATS.get(schema.get("format", ""), pa.string())
    return SIMPLE.get(kind or "", pa.string())


def object_type(schema: dict[str, Any], document: Any, depth: int) -> Any:
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        return pa.struct(
            [
                pa.field(name, type_of(part, document, depth + 1))
                for name, part in properties.items()
            ]
        )
    further = schema.get("additionalProperties")
    if isinstance(further, dict):
        return pa.map_(pa.string(), type_of(further, document, depth + 1))
    return pa.string()


def followed(schema: Any, document: Any) -> Any:
    """Resolve references within the document; the length of a chain is bounded."""
    for _ in range(DEPTH_MAX):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = document
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(key) if isinstance(schema, dict) else None
    return None


def is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"
