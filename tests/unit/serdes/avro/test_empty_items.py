"""A walk through a payload finds its end, and arrays with too many empty items."""

import json
from typing import Any

import pytest

from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.empty_items import EMPTY_ITEMS_MAX, takes_no_bytes, walk
from headrace.serdes.avro.parsing import parse
from headrace.serdes.payload_errors import CorruptPayload
from headrace.serdes.varints import write_varint


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("null", None),
        ("string", "abc"),
        ("double", 1.5),
        (["null", "long"], -5),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A"),
        ({"type": "map", "values": {"type": "array", "items": "int"}}, {"a": [1, 2], "b": []}),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "bytes"}]}, {"a": b"x"}),
    ],
)
def test_a_value_ends_where_it_was_written_to(kind: Any, value: Any) -> None:
    schema = parse(json.dumps(kind))
    payload = encode(schema, value)
    assert walk(schema.root, payload + b"more") == len(payload)


@pytest.mark.parametrize("count", [EMPTY_ITEMS_MAX + 1, -EMPTY_ITEMS_MAX - 1])
def test_an_array_that_claims_too_many_nulls_is_refused(count: int) -> None:
    schema = parse('{"type":"array","items":"null"}')
    size = write_varint(0) if count < 0 else b""
    with pytest.raises(CorruptPayload, match="take no bytes"):
        walk(schema.root, write_varint(count) + size + b"\x00")


def test_a_value_of_countless_empty_parts_is_refused() -> None:
    inner: Any = {"type": "record", "name": "R60", "fields": []}
    for level in reversed(range(60)):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{level + 1}"}]
        inner = {"type": "record", "name": f"R{level}", "fields": fields}
    with pytest.raises(CorruptPayload, match="parts"):
        decode(parse(json.dumps(inner)), None, b"")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"null"', True),
        ('"int"', False),
        ('["null"]', False),
        ('{"type":"fixed","name":"F","size":0}', True),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"null"}]}', True),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"R"}]}', False),
    ],
)
def test_some_types_take_no_bytes(text: str, expected: bool) -> None:
    assert takes_no_bytes(parse(text).root) is expected
