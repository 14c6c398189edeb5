"""Schemas of any type from a class, and source from a schema of any type."""

import json

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from headrace.serdes.classes import Flavour
from headrace.serdes.classes.conversion import (
    schema_of,
    source_of_avro,
    source_of_descriptor,
    source_of_json_schema,
)
from headrace.serdes.schemas import Dependency, SchemaType
from tests.unit.serdes.classes.orders import Line


@pytest.mark.parametrize(
    ("type", "part"),
    [
        (SchemaType.AVRO, '{"type":"record","name":"Line"'),
        (SchemaType.JSON, '"title":"Line","type":"object"'),
        (SchemaType.PROTOBUF, "message Line {"),
    ],
)
def test_a_class_has_a_schema_of_every_type(type: SchemaType, part: str) -> None:
    """SCH-13"""
    assert part in schema_of(Line, type)


def test_an_avro_schema_gives_source() -> None:
    text = schema_of(Line, SchemaType.AVRO)
    assert "class Line(Struct):" in source_of_avro(text, Flavour.MSGSPEC)


def test_source_of_a_json_schema_includes_its_references() -> None:
    text = '{"title": "R", "properties": {"x": {"$ref": "line.json"}}}'
    dependency = Dependency("line.json", schema_of(Line, SchemaType.JSON))
    assert "class Line:" in source_of_json_schema(text, dependencies=[dependency])


def test_parts_that_were_put_together_are_not_written_for_themselves() -> None:
    parts = [{"properties": {name: {"type": "string"}}} for name in "ab"]
    text = source_of_json_schema(json.dumps({"title": "R", "allOf": parts}))
    assert text.count("class ") == 1


def test_a_descriptor_gives_source() -> None:
    file = FileDescriptorProto(name="a.proto", message_type=[DescriptorProto(name="A")])
    assert "class A(BaseModel):" in source_of_descriptor(file, Flavour.PYDANTIC)
