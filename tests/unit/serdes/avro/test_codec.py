"""Values are decoded by the reader's schema; invalid bytes raise one error."""

import datetime
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import CorruptPayload, UnfitValue

EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "nothing", "type": "null"},
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "single", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "data", "type": "bytes"},
        {"name": "text", "type": "string"},
        {"name": "enum", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "array", "type": {"type": "array", "items": "int"}},
        {"name": "map", "type": {"type": "map", "values": "long"}},
        {"name": "union", "type": ["null", "string", "double"]},
    ],
}
VALUE = {
    "nothing": None,
    "flag": True,
    "small": -(1 << 31),
    "large": (1 << 63) - 1,
    "single": 0.5,
    "double": -1e300,
    "data": b"\x00\xff",
    "text": "grün \U0001f600",
    "enum": "B",
    "fixed": b"ab",
    "array": [1, -2, 3],
    "map": {"a": 1, "b": -1},
    "union": "x",
}


def schema(value: Any) -> AvroSchema:
    return parse(json.dumps(value))


def record(*fields: dict[str, Any], name: str = "R") -> AvroSchema:
    return schema({"type": "record", "name": name, "fields": list(fields)})


def test_a_value_of_all_types_comes_back() -> None:
    """SCH-1"""
    everything = schema(EVERYTHING)
    assert decode(everything, None, encode(everything, VALUE)) == VALUE


def test_fastavro_reads_our_payloads() -> None:
    """SCH-1"""
    payload = io.BytesIO(encode(schema(EVERYTHING), VALUE))
    assert fastavro.schemaless_reader(payload, EVERYTHING, None) == VALUE


def test_payloads_of_fastavro_are_read() -> None:
    """SCH-1"""
    written = io.BytesIO()
    fastavro.schemaless_writer(written, EVERYTHING, VALUE)
    assert decode(schema(EVERYTHING), None, written.getvalue()) == VALUE


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "int", "logicalType": "date"}, datetime.date(2026, 11, 17)),
        ({"type": "int", "logicalType": "time-millis"}, datetime.time(12, 30, 1, 5000)),
        ({"type": "long", "logicalType": "time-micros"}, datetime.time(12, 30, 1, 5)),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(2026, 11, 17, 9, 0, 0, 1000, datetime.UTC),
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            datetime.datetime(2026, 11, 17, 9, 0, 0, 1),
        ),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=5)),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            Decimal("-1234.50"),
        ),
        (
            {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 6},
            Decimal(-123456),
        ),
    ],
    ids=lambda part: part["logicalType"] if isinstance(part, dict) else "",
)
def test_logical_types_are_values_of_python(kind: Any, value: Any) -> None:
    assert decode(schema(kind), None, encode(schema(kind), value)) == value


def test_without_logical_types_values_are_as_written() -> None:
    date = schema({"type": "int", "logicalType": "date"})
    assert decode(date, None, encode(date, datetime.date(1970, 1, 3)), logical=False) == 2


def test_a_new_reader_reads_the_data_of_an_old_writer() -> None:
    """SCH-6, SCH-10"""
    old = record(
        {"name": "id", "type": "int"},
        {"name": "email", "type": "string"},
        {"name": "faxNumber", "type": "string"},
        name="Customer",
    )
    new = record(
        {"name": "customerId", "type": "long", "aliases": ["id"]},
        {"name": "email", "type": ["null", "string"]},
        {"name": "prefLang", "type": "string", "default": "en_US"},
        name="Customer",
    )
    payload = encode(old, {"id": 7, "email": "ada@example.org", "faxNumber": "1"})
    assert decode(old, new, payload) == {
        "customerId": 7,
        "email": "ada@example.org",
        "prefLang": "en_US",
    }


def test_without_alias_a_renamed_field_is_missing() -> None:
    """SCH-6"""
    old, new = record({"name": "id", "type": "int"}), record({"name": "customerId", "type": "int"})
    with pytest.raises(CorruptPayload, match="customerId: the field is missing and has no default"):
        decode(old, new, encode(old, {"id": 7}))


def test_a_default_is_a_value_of_its_own_for_each_reader() -> None:
    """SCH-3"""
    old = record()
    new = record(
        {"name": "list", "type": {"type": "array", "items": "int"}, "default": [1]},
        {"name": "data", "type": "bytes", "default": "\u00ff"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 1},
    )
    decode(old, new, b"")["list"].append(2)
    assert decode(old, new, b"") == {
        "list": [1],
        "data": b"\xff",
        "day": datetime.date(1970, 1, 2),
    }


def test_defaults_fill_fields_that_are_not_given() -> None:
    """SCH-3"""
    kind = record({"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"})
    assert decode(kind, None, encode(kind, {"a": 1})) == {"a": 1, "b": "x"}


def test_an_invalid_default_read_leniently_is_reported_on_use() -> None:
    """SCH-3"""
    text = '{"type":"record","name":"R","fields":[{"name":"taxcode","type":"int","default":"39"}]}'
    with pytest.raises(UnfitValue, match="taxcode: the schema's default '39' does not fit"):
        encode(parse(text, lenient=True), {})


def test_a_branch_that_can_have_no_values_harms_no_other() -> None:
    endless = {"type": "record", "name": "L", "fields": [{"name": "n", "type": "L"}]}
    assert decode(schema(["int", endless]), None, b"\x00\x0a") == 5


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("string", b""),
        ("string", b"\x04a"),
        ("string", b"\x01"),
        ("string", b"\x02\xff"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("long", b"\xff" * 11),
        ("double", b"\x00" * 7),
        ("int", b"\x02\x02"),
        (["null", "int"], b"\x04"),
        (["null", "int"], b"\x01"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\x00"),
        ({"type": "array", "items": "int"}, b"\x7e\x00"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\x00"),
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f"),
        (
            {"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]},
            b"\x02" * 100_000,
        ),
        ({"type": "record", "name": "L", "fields": [{"name": "n", "type": "L"}]}, b""),
    ],
)
def test_invalid_bytes_are_one_error(kind: Any, payload: bytes) -> None:
    with pytest.raises(CorruptPayload):
        decode(schema(kind), None, payload)
