"""Avro's JSON encoding as bytes; errors name the field."""

import json
from typing import Any

import pytest

from headrace.serdes.avro.json_reading import json_of_payload
from headrace.serdes.avro.json_writing import payload_of_json
from headrace.serdes.avro.parsing import parse
from headrace.serdes.payload_errors import UnfitValue

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": ["null", "int"]}]}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (["null", ITEM], {"Item": {"price": {"int": 5}}}),
        (["null", ITEM], None),
        ({"type": "array", "items": ["string", "bytes"]}, [{"bytes": "ÿ"}, {"string": "ÿ"}]),
        ({"type": "map", "values": "double"}, {"a": 1.5, "b": "NaN"}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, "ab"),
    ],
)
def test_written_values_are_read_again(kind: Any, value: Any) -> None:
    schema = parse(json.dumps(kind))
    assert json_of_payload(schema, payload_of_json(schema, value)) == value


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (["null", "int"], 5, r'5 names no branch .* write null, or \{"int": \.\.\.\}'),
        (["null", "int"], {"long": 5}, "names no branch of the union of null, int"),
        (["int", "long"], {"int": 1, "long": 2}, "names no branch"),
        (ITEM, {}, "price: it is missing"),
        (ITEM, {"price": None, "b": 1}, "the record Item has no field b"),
        (ITEM, {"price": {"int": "x"}}, "price: 'x' is not an int"),
        ({"type": "array", "items": "int"}, [1, None], r"\[1\]: null is not an int"),
        ({"type": "map", "values": "int"}, [], "is not a map"),
        ("bytes", "\u0100", "is not bytes"),
        ("double", "much", "'much' is not a number"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "is not the enum E"),
        ({"type": "fixed", "name": "F", "size": 2}, "a", "is not the fixed F of 2 bytes"),
    ],
)
def test_unfit_json_is_refused_by_the_name_of_its_field(kind: Any, value: Any, reason: str) -> None:
    with pytest.raises(UnfitValue, match=reason):
        payload_of_json(parse(json.dumps(kind)), value)
