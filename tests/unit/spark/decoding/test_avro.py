"""Avro payloads to columns, flat and nested, written by one schema and read by another."""

import datetime as dt
import io
import json
import pickle
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headrace.spark.decoding.avro.decoder import AvroDecoder
from headrace.spark.decoding.avro.schemas import avro_schema
from headrace.spark.decoding.errors import InvalidSchema

Schema = dict[str, Any]


def record(*fields: tuple[str, Any] | Schema) -> Schema:
    found = [
        field if isinstance(field, dict) else {"name": field[0], "type": field[1]}
        for field in fields
    ]
    return {"type": "record", "name": "Event", "fields": found}


def encode(schema: Schema, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decoder(writer: Schema, reader: Schema | None = None) -> AvroDecoder:
    return AvroDecoder(json.dumps(writer), json.dumps(reader or writer))


def read(
    payloads: list[bytes | None], writer: Schema, reader: Schema | None = None
) -> list[tuple[dict[str, Any], str | None]]:
    decoded = decoder(writer, reader).decode(pa.array(payloads, pa.binary()))
    decoded.columns.validate(full=True)
    return list(zip(decoded.columns.to_pylist(), decoded.errors.to_pylist(), strict=True))


SHAPES: list[tuple[Any, Any]] = [
    ("boolean", True),
    ("int", -(1 << 31)),
    ("long", (1 << 63) - 1),
    ("long", -(1 << 63)),
    ("float", 0.5),
    ("double", -1.25e300),
    ("string", "Grüße"),
    ("bytes", b"\x00\xff"),
    (["null", "string"], None),
    (["null", "string"], "x"),
    (["long", "null"], -5),
    (["int", "long"], 1 << 40),
    ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
    ({"type": "int", "logicalType": "date"}, dt.date(1969, 12, 31)),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        dt.datetime(2026, 11, 17, 9, 18, 17, 123000, tzinfo=dt.UTC),
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        dt.datetime(1960, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        Decimal("-12345678.90"),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
        Decimal("-98765432109876543210987654321098765432"),
    ),
    (
        {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 38},
        Decimal("123456789012345678901234567890"),
    ),
    ({"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}, {"x": -1}),
    (["null", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}], None),
    ({"type": "array", "items": "long"}, [1, -2, 3]),
    ({"type": "array", "items": {"type": "int", "logicalType": "date"}}, [dt.date(2026, 1, 2)]),
    ({"type": "array", "items": ["null", "string"]}, ["a", None]),
]


@pytest.mark.parametrize(("type_", "value"), SHAPES)
def test_a_value_is_read_as_it_was_written(type_: Any, value: Any) -> None:
    schema = record(("before", "int"), ("x", type_), ("after", "string"))
    payload = encode(schema, {"before": 7, "x": value, "after": "end"})
    assert read([payload], schema) == [({"before": 7, "x": value, "after": "end"}, None)]


@pytest.mark.parametrize("more", [[], [("xs", {"type": "array", "items": "int"})]])
def test_logical_types_that_spark_lacks_are_read_as_what_they_are_written_as(more: Any) -> None:
    """A flat schema is read by compiled code, the other one by fastavro."""
    uuid = {"type": "string", "logicalType": "uuid"}
    clock = {"type": "int", "logicalType": "time-millis"}
    plain = encode(record(("u", "string"), ("c", "int"), *more), {"u": "no", "c": 7, "xs": []})
    ((row, error),) = read([plain], record(("u", uuid), ("c", clock), *more))
    assert (row["u"], row["c"], error) == ("no", 7, None)


def test_a_map_is_read_as_pairs() -> None:
    schema = record(("m", {"type": "map", "values": "long"}))
    assert read([encode(schema, {"m": {"a": 1}})], schema) == [({"m": [("a", 1)]}, None)]


FLAT = record(("id", "long"), ("name", "string"), ("ok", "boolean"), ("n", ["null", "int"]))
GOOD = encode(FLAT, {"id": 1, "name": "ab", "ok": True, "n": None})


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "ends within id"),
        (GOOD[:-1], "ends within n"),
        (GOOD + b"x", "1 bytes follow it"),
        (b"\xff" * 11, "no BIGINT for id at byte 0"),
        (b"\x02\x09ab", "name cannot be so long, at byte 1"),
        (b"\x02\x01", "name cannot be so long, at byte 1"),
        (b"\x02\x04ab\x02\x00", "ok is no boolean, at byte 4"),
        (b"\x02\x04ab\x01\x04", "n has no such branch, at byte 5"),
        (b"\x02\x04ab\x01\x02" + b"\xfe\xff\xff\xff\x7f", "no INT for n at byte 6"),
    ],
)
def test_a_bad_payload_says_why(payload: bytes, why: str) -> None:
    ((row, error), (next_row, next_error)) = read([payload, GOOD], FLAT)
    assert set(row.values()) == {None}
    assert error == f"not a record of this Avro schema: {why}"
    assert (next_row["id"], next_error) == (1, None)


def test_text_that_is_not_utf8_makes_its_row_bad() -> None:
    rows = read([b"\x02\x02\xff\x01\x00", GOOD], FLAT)
    assert rows[0] == (dict.fromkeys(("id", "name", "ok", "n")), "the payload is not UTF-8")
    assert rows[1][1] is None


def test_a_decimal_with_too_many_digits_makes_its_row_bad() -> None:
    wide = record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 9}))
    narrow = record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 4}))
    ((row, error),) = read([encode(wide, {"d": Decimal(123456)})], narrow)
    assert row == {"d": None}
    assert error is not None
    assert error.endswith("is not a DECIMAL(4,0)")


def test_a_decimal_at_the_edge_of_64_bits_is_counted_by_its_digits() -> None:
    narrow = record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 10}))
    ((row, error),) = read([b"\x10\x80" + bytes(7)], narrow)
    assert row == {"d": None}
    assert error is not None


def test_a_time_beyond_all_calendars_makes_its_row_bad() -> None:
    schema = record(("t", {"type": "long", "logicalType": "timestamp-millis"}))
    ((row, error),) = read([b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"], schema)
    assert row == {"t": None}
    assert error is not None
    assert error.endswith("is not a TIMESTAMP")


def test_tombstones_are_rows_of_nulls() -> None:
    assert read([None], FLAT) == [(dict.fromkeys(("id", "name", "ok", "n")), None)]


def test_nested_payloads_that_are_bad_say_so_too() -> None:
    schema = record(("xs", {"type": "array", "items": "long"}))
    rows = read([b"\xff\xff", encode(schema, {"xs": [1]}), b"\x02", None], schema)
    assert [row for row, _ in rows] == [{"xs": None}, {"xs": [1]}, {"xs": None}, {"xs": None}]
    assert [error is None for _, error in rows] == [False, True, False, True]


READER = record(
    ("id", "double"),
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "level", "type": "int", "default": 3},
    ("name", ["null", "string"]),
)


def test_a_reader_may_widen_drop_and_default() -> None:
    rows = read([GOOD, None, b"\xff"], FLAT, READER)
    assert rows[0] == ({"id": 1.0, "note": None, "level": 3, "name": "ab"}, None)
    assert [set(row.values()) for row, _ in rows[1:]] == [{None}, {None}]


def test_a_reader_may_know_a_field_by_another_name() -> None:
    reader = record({"name": "label", "aliases": ["name"], "type": "string"})
    assert read([GOOD], FLAT, reader) == [({"label": "ab"}, None)]


def test_a_reader_that_takes_no_null_makes_such_rows_bad() -> None:
    rows = read(
        [GOOD, encode(FLAT, {"id": 1, "name": "", "ok": False, "n": 5})], FLAT, record(("n", "int"))
    )
    assert rows[0][0] == {"n": None}
    assert rows[0][1] is not None
    assert rows[1] == ({"n": 5}, None)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ('{"type": "record"', "cannot be read"),
        ('"string"', "rows need a record"),
        ('{"type": "record", "name": "R", "fields": [{"name": "x", "type": "Nobody"}]}', "Nobody"),
        (json.dumps(record(("x", ["string", "int"]))), "a union of string, int"),
        (json.dumps(record(("x", {"type": "array", "items": "null"}))), "take no bytes"),
        (json.dumps(record(("x", ["null", "Event"]))), "holds itself"),
        ("[" * 100_000, "cannot be read"),
        ("null", "cannot be read"),
        ("17", "cannot be read"),
    ],
)
def test_a_schema_that_rows_cannot_have_is_refused(schema: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        avro_schema(schema)


def test_a_schema_may_refer_to_others() -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}
    text = json.dumps(record(("at", "Place")))
    made = AvroDecoder(text, text, (json.dumps(place),), (json.dumps(place),))
    assert made.decode(pa.array([b"\x06"])).columns.to_pylist() == [{"at": {"x": 3}}]


def test_a_decoder_can_be_sent_to_a_worker_after_use() -> None:
    used = decoder(FLAT, READER)
    used.decode(pa.array([GOOD]))
    sent = pickle.loads(pickle.dumps(used))
    assert sent.decode(pa.array([GOOD])).errors.to_pylist() == [None]
