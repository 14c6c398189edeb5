"""Values that do not fit their schema are rejected with the name of the field."""

import datetime
import json
from typing import Any

import pytest

from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import UnfitValue

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": "int"}]}


def schema(value: Any) -> AvroSchema:
    return parse(json.dumps(value))


def field(kind: Any, **more: Any) -> AvroSchema:
    fields = [{"name": "a", "type": kind, **more}]
    return schema({"type": "record", "name": "R", "fields": fields})


@pytest.mark.parametrize("kind", ["boolean", "int", "long", "double", "bytes", "string", ITEM])
def test_null_is_refused_where_no_union_allows_it(kind: Any) -> None:
    """SCH-4"""
    with pytest.raises(UnfitValue, match=r"^a: null is not .* only a union with null takes it"):
        encode(field(kind), {"a": None})


def test_null_is_written_where_a_union_allows_it() -> None:
    """SCH-4"""
    assert encode(field(["null", "string"]), {"a": None}) == b"\x00"


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("int", 3.7, "a: 3.7 is not an int"),
        ("int", True, "a: True is not an int"),
        ("int", 1 << 31, "an int of 32 bits"),
        ("long", 1 << 63, "a long of 64 bits"),
        ("double", "1", "a: '1' is not a number"),
        ("boolean", 1, "a: 1 is not a boolean"),
        ("bytes", "x", "a: 'x' is not bytes"),
        ("string", b"x", "is not a string"),
        ("string", "\ud800", "whole characters"),
        ({"type": "array", "items": "string"}, "xyz", "is not an array"),
        ({"type": "array", "items": "int"}, [1, "x"], r"^a\[1\]: 'x' is not an int"),
        ({"type": "map", "values": "int"}, {"k": "x"}, r"^a\['k'\]: 'x' is not an int"),
        ({"type": "map", "values": "int"}, {1: 1}, "is not a string"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", r"the enum E \(A\)"),
        ({"type": "fixed", "name": "F", "size": 2}, b"x", "the fixed F of 2 bytes"),
        (["int", "string"], 1.5, "is not any of int, string"),
        (["int", "string"], ("long", 5), r"not a pair of a branch \(int, string\)"),
        (["null", ITEM], {"price": "x"}, "^a.price: 'x' is not an int"),
        (["null", "int", ITEM], {"price": "x"}, "^a.price: 'x' is not an int"),
        (ITEM, {"price": 1, "prize": 2}, "^a: the record Item has no field prize"),
        (ITEM, {}, "^a.price: it is missing and has no default"),
        (ITEM, 5, "5 is not the record Item"),
    ],
)
def test_an_unfit_value_is_refused_by_the_name_of_its_field(
    kind: Any, value: Any, reason: str
) -> None:
    with pytest.raises(UnfitValue, match=reason):
        encode(field(kind), {"a": value})


@pytest.mark.parametrize(
    ("union", "value", "written"),
    [
        (["double", "long"], 5, b"\x02\x0a"),
        (["float", "double"], 0.5, b"\x02\x00\x00\x00\x00\x00\x00\xe0\x3f"),
        (["string", "double"], 0, b"\x02" + b"\x00" * 8),
        (["int", "long"], 1 << 40, b"\x02\x80\x80\x80\x80\x80\x40"),
        ([{"type": "map", "values": "int"}, ITEM], {"price": 1}, b"\x02\x02"),
        ([{"type": "map", "values": "int"}, ITEM], {"other": 1}, b"\x00\x02\x0aother\x02\x00"),
        (
            [{"type": "map", "values": "int"}, ITEM],
            ("map", {"price": 1}),
            b"\x00\x02\x0aprice\x02\x00",
        ),
        (["null", ITEM], {"-type": "Item", "price": 1}, b"\x02\x02"),
    ],
)
def test_a_union_takes_the_branch_that_is_the_values_own(
    union: Any, value: Any, written: bytes
) -> None:
    assert encode(schema(union), value) == written


def test_a_time_without_a_zone_is_refused() -> None:
    kind = field({"type": "long", "logicalType": "timestamp-millis"})
    with pytest.raises(UnfitValue, match="has no time zone"):
        encode(kind, {"a": datetime.datetime(2026, 11, 17)})


def test_a_value_that_nests_too_deep_is_refused() -> None:
    kind = schema({"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]})
    value: Any = None
    for _ in range(5000):
        value = {"n": value}
    with pytest.raises(UnfitValue, match="too deep"):
        encode(kind, value)


def test_types_without_a_namespace_live_within_those_that_have_one() -> None:
    inner = {"type": "fixed", "name": "F", "namespace": "", "size": 1}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "F"}]
    kind = schema({"type": "record", "name": "n.R", "fields": fields})
    assert decode(kind, None, encode(kind, {"a": b"x", "b": b"y"})) == {"a": b"x", "b": b"y"}
