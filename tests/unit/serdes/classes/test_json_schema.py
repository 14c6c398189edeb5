"""JSON Schemas of classes, and the model of JSON Schemas."""

import json
from dataclasses import make_dataclass
from typing import Any

import pytest

from headrace.registry.compatibility.json_schema.comparison import incompatibilities
from headrace.serdes.classes import Inexpressible, json_schema
from headrace.serdes.classes.inspection import shape_of
from headrace.serdes.classes.model import (
    Choice,
    Field,
    ListOf,
    MapOf,
    Named,
    Record,
    Scalar,
    Shape,
    Type,
    UnionOf,
)
from headrace.serdes.json_schema.codec import encode
from headrace.serdes.json_schema.parsing import parse
from headrace.serdes.schemas import Dependency
from tests.unit.serdes.classes.orders import Line, Order, Sku, Struct


def written(cls: type) -> Any:
    return json.loads(json_schema.write(shape_of(cls)))


def read(properties: Any, **more: Any) -> Shape:
    return json_schema.read(json.dumps({"title": "R", "properties": properties, **more}))


def type_of(schema: Any, **more: Any) -> Type:
    return read({"x": schema}, required=["x"], **more).record("R").fields[0].type


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("id", {"type": "string", "format": "uuid"}),
        ("price", {"type": "string", "format": "decimal", "description": "In euros."}),
        ("parent", {"anyOf": [{"$ref": "#"}, {"type": "null"}], "default": None}),
        ("lines", {"type": "array", "items": {"$ref": "#/definitions/Line"}, "default": []}),
        ("day", {"type": "string", "format": "date", "default": "1970-01-11"}),
        ("raw", {"type": "string", "contentEncoding": "base64", "default": "AP8="}),
        ("color", {"allOf": [{"$ref": "#/definitions/Color"}], "default": "blue"}),
        ("state", {"type": "string", "enum": ["new", "done"], "default": "new"}),
    ],
)
def test_a_field_is_written(name: str, schema: Any) -> None:
    assert written(Order)["properties"][name] == schema


def test_fields_without_defaults_are_required() -> None:
    assert written(Order)["required"] == ["id", "price"]


def test_an_instance_of_a_class_is_valid_by_its_schema() -> None:
    """SCH-13"""
    assert encode(parse(json_schema.write(shape_of(Line))), Line(Sku("a"), 2))


def test_a_struct_is_valid_by_its_schema_under_its_names() -> None:
    schema = parse(json_schema.write(shape_of(Struct)))
    assert encode(schema, Struct("Ada")) == b'{"firstName":"Ada","lastName":"Doe","wait":null}'


def test_a_field_with_a_default_can_be_added_to_a_class() -> None:
    """SCH-12: the objects of classes are closed, so that they can grow."""
    old = make_dataclass("R", [("a", int)])
    new = make_dataclass("R", [("a", int), ("b", int, 0)])
    reader, writer = (parse(json_schema.write(shape_of(each))) for each in (new, old))
    assert incompatibilities(reader, writer) == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, Scalar.ANY),
        (True, Scalar.ANY),
        ({"type": ["string", "null"]}, UnionOf((Scalar.STRING, Scalar.NULL))),
        ({"oneOf": [{"type": "null"}, {"type": "number"}]}, UnionOf((Scalar.NULL, Scalar.DOUBLE))),
        ({"enum": ["a", 1]}, Choice(("a", 1))),
        ({"enum": ["a", None]}, UnionOf((Scalar.NULL, Choice(("a",))))),
        ({"const": 3}, Choice((3,))),
        ({"enum": [1.5]}, Scalar.ANY),
        ({"type": "object"}, MapOf(Scalar.ANY)),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, MapOf(Scalar.LONG)),
        ({"type": "array"}, ListOf(Scalar.ANY)),
        ({"type": "array", "items": [{"type": "string"}]}, ListOf(Scalar.ANY)),
        ({"type": "object", "properties": {"y": {}}}, Named("RX")),
        ({"title": "E", "enum": ["a"]}, Named("E")),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, Scalar.ANY),
    ],
)
def test_a_schema_is_a_type(schema: Any, expected: Type) -> None:
    assert type_of(schema) == expected


def test_an_optional_property_without_a_default_may_be_none() -> None:
    (field,) = read({"x": {"type": "string"}}).record("R").fields
    assert field == Field(name="x", type=UnionOf((Scalar.STRING, Scalar.NULL)), default=None)


def test_parts_of_objects_are_put_together() -> None:
    parts = [{"properties": {"a": {}}}, {"$ref": "#/definitions/b"}]
    shape = read({"c": {}}, allOf=parts, definitions={"b": {"properties": {"b": {}}}})
    assert [field.name for field in shape.record(shape.root.name).fields] == ["a", "b", "c"]


def test_a_nullable_object_may_refer_to_itself() -> None:
    shape = read({"next": {"$ref": "#/definitions/node"}}, definitions={
        "node": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/definitions/node"}}}
    })  # fmt: skip
    assert isinstance(shape.definitions["Node"], Record)


def test_a_recursive_list_is_a_list_of_anything() -> None:
    shape = type_of({"$ref": "#/definitions/a"}, definitions={
        "a": {"type": "array", "items": {"$ref": "#/definitions/a"}}
    })  # fmt: skip
    assert shape == ListOf(Scalar.ANY)


def test_a_dependency_is_a_class_of_its_own() -> None:
    text = '{"title": "R", "properties": {"x": {"$ref": "line.json"}}, "required": ["x"]}'
    dependency = Dependency("line.json", '{"properties": {"sku": {"type": "string"}}}')
    shape = json_schema.read(text, [dependency])
    assert shape.record("R").fields[0].type == Named("Line")


def test_objects_of_one_title_get_numbers() -> None:
    inner = {"title": "Same", "properties": {"y": {}}}
    shape = read({"a": {**inner}, "b": {**inner}})
    assert list(shape.definitions) == ["R", "Same", "Same2"]


def test_a_schema_of_no_object_gives_no_class() -> None:
    with pytest.raises(Inexpressible, match="an object with properties"):
        json_schema.read('{"type": "string"}')


def test_a_chain_of_definitions_that_is_too_long_is_refused() -> None:
    links = {
        str(number): {"properties": {"next": {"$ref": f"#/definitions/{number + 1}"}}}
        for number in range(100)
    }
    with pytest.raises(Inexpressible, match="levels deep"):
        read({"x": {"$ref": "#/definitions/0"}}, definitions=links | {"100": {}})


def test_keys_of_an_object_are_strings() -> None:
    with pytest.raises(Inexpressible, match="keys of a JSON object are strings"):
        written(make_dataclass("R", [("x", dict[int, str])]))


def test_an_invalid_default_is_reported_with_its_place() -> None:
    with pytest.raises(Inexpressible, match=r"R\.x: the default 'soon' does not fit"):
        read({"x": {"type": "string", "format": "date", "default": "soon"}})
