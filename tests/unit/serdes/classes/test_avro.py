"""Avro schemas of classes, and the model of Avro schemas."""

import json
from dataclasses import make_dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import fastavro
import pytest

from headrace.serdes.classes import Inexpressible, Wire, avro
from headrace.serdes.classes.inspection import shape_of
from headrace.serdes.classes.model import ListOf, Named, Scalar, UnionOf
from tests.unit.serdes.classes.orders import Order


def written(cls: type) -> Any:
    return json.loads(avro.write(shape_of(cls)))


def field(name: str) -> Any:
    return next(each for each in written(Order)["fields"] if each["name"] == name)


def test_a_schema_is_valid_avro() -> None:
    """SCH-1: fastavro reads it, defaults included."""
    parsed: Any = fastavro.parse_schema(written(Order))
    assert parsed["name"] == "com.acme.Order"


def test_a_record_has_its_docstring_and_aliases() -> None:
    schema = written(Order)
    assert (schema["doc"], schema["aliases"]) == ("An order of a customer.", ["com.acme.Purchase"])


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("id", {"type": {"type": "string", "logicalType": "uuid"}}),
        (
            "price",
            {
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
                "doc": "In euros.",
            },
        ),
        ("parent", {"type": ["null", "com.acme.Order"], "default": None}),
        ("tags", {"type": {"type": "map", "values": "string"}, "default": {"a": "b"}}),
        ("day", {"type": {"type": "int", "logicalType": "date"}, "default": 10}),
        ("at", {"type": {"type": "long", "logicalType": "time-micros"}, "default": 1_000_000}),
        ("raw", {"type": "bytes", "default": "\x00\xff"}),
        ("what", {"type": ["string", "long", "null"], "default": "x"}),
        ("best", {"type": "com.acme.Line", "default": {"sku": "s", "count": 1}}),
        ("from", {"type": "string", "default": "", "aliases": ["since"]}),
        (
            "state",
            {
                "type": {"type": "enum", "name": "com.acme.OrderState", "symbols": ["new", "done"]},
                "default": "new",
            },
        ),
        (
            "level",
            {
                "type": {"type": "enum", "name": "com.acme.Level", "symbols": ["LOW", "HIGH"]},
                "default": "HIGH",
            },
        ),
    ],
)
def test_a_field_is_written(name: str, schema: Any) -> None:
    assert field(name) == {"name": name, **schema}


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (Decimal, r"Holder\.x: Avro needs the digits of a decimal"),
        (Any, r"Holder\.x: Any has no type in Avro"),
        (dict[int, str], "keys of an Avro map are strings"),
        (Literal["a-b"], "'a-b' is not a symbol of an Avro enum"),
        (Annotated[int, Wire(name="a-b")], "'a-b' is not a name in Avro"),
    ],
)
def test_a_type_that_avro_lacks_is_reported_with_its_place(hint: Any, reason: str) -> None:
    with pytest.raises(Inexpressible, match=reason):
        written(make_dataclass("Holder", [("x", hint)]))


def test_names_within_a_namespace_are_found() -> None:
    schema = {
        "type": "record",
        "name": "A",
        "namespace": "n",
        "fields": [
            {"name": "a", "type": {"type": "fixed", "name": "F", "size": 2}},
            {"name": "b", "type": ["null", "A"]},
            {"name": "c", "type": {"type": "array", "items": "n.A"}},
            {"name": "d", "type": "F"},
        ],
    }
    types = [each.type for each in avro.read(json.dumps(schema)).record("n.A").fields]
    assert types == [
        Scalar.BYTES,
        UnionOf((Scalar.NULL, Named("n.A"))),
        ListOf(Named("n.A")),
        Scalar.BYTES,
    ]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('"string"', "A class is made from a record"),
        ("{", "is not JSON"),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "x", "type": "B"}]}',
            "Undefined schema: B",
        ),
        ('{"type": "record", "fields": []}', "No name"),
    ],
)
def test_a_schema_that_gives_no_class_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(Inexpressible, match=reason):
        avro.read(schema)


def test_an_invalid_default_is_reported_with_its_place() -> None:
    field = '{"name": "x", "type": {"type": "int", "logicalType": "date"}, "default": "39"}'
    with pytest.raises(Inexpressible, match=r"A\.x: the default '39' does not fit its type"):
        avro.read(f'{{"type": "record", "name": "A", "fields": [{field}]}}')
