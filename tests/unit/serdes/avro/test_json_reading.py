"""Bytes as Avro's JSON encoding: a union's value names its branch."""

import json
import math
from typing import Any

import pytest

from headrace.serdes.avro.codec import encode
from headrace.serdes.avro.json_reading import json_of_payload
from headrace.serdes.avro.parsing import parse
from headrace.serdes.payload_errors import CorruptPayload

ITEM = {"type": "record", "name": "n.Item", "fields": [{"name": "price", "type": ["null", "int"]}]}


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("bytes", b"\x00\xff", "\u0000\u00ff"),
        ({"type": "fixed", "name": "F", "size": 1}, b"\xe9", "é"),
        (["null", "string"], None, None),
        (["null", "string"], "x", {"string": "x"}),
        (["null", ITEM], {"price": 5}, {"n.Item": {"price": {"int": 5}}}),
        ("double", math.inf, "Infinity"),
        ("float", math.nan, "NaN"),
        ({"type": "int", "logicalType": "date"}, 5, 5),
        ({"type": "map", "values": ["int", "long"]}, {"a": 1}, {"a": {"int": 1}}),
    ],
)
def test_values_have_the_json_that_java_writes(kind: Any, value: Any, found: Any) -> None:
    schema = parse(json.dumps(kind))
    assert json_of_payload(schema, encode(schema, value)) == found


def test_bytes_that_are_no_value_are_refused() -> None:
    with pytest.raises(CorruptPayload):
        json_of_payload(parse('["null","string"]'), b"\x02\x10x")
