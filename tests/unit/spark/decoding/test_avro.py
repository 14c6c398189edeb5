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
from headrace.spark.decoding.avro.rows import RowReader
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
def test_logical_types_that_spark_lacks_are_read_as_their_base_type(more: Any) -> None:
    """A flat schema is read by compiled code, the other one row by row."""
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
        (b"\xff" * 11, "invalid BIGINT for id at byte 0"),
        (b"\x02\x09ab", "name cannot be so long, at byte 1"),
        (b"\x02\x01", "name cannot be so long, at byte 1"),
        (b"\x02\x04ab\x02\x00", "ok is not a boolean, at byte 4"),
        (b"\x02\x04ab\x01\x04", "n has no such branch, at byte 5"),
        (b"\x02\x04ab\x01\x02" + b"\xfe\xff\xff\xff\x7f", "invalid INT for n at byte 6"),
    ],
)
def test_a_bad_payload_has_an_error_with_the_reason(payload: bytes, why: str) -> None:
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


def test_row_by_row_reading_reports_milliseconds_out_of_range() -> None:
    more = (("u", ["int", "string"]), ("m", {"type": "map", "values": "int"}))
    schema = record(("t", {"type": "long", "logicalType": "timestamp-millis"}), *more)
    payload = encode(record(("t", "long"), *more), {"t": 1 << 62, "u": 1, "m": {}})
    ((row, error),) = read([payload], schema)
    assert row["t"] is None
    assert error == (
        f"not a record of this Avro schema: {1 << 62} milliseconds since 1970 are more than a"
        " TIMESTAMP holds"
    )


def test_a_time_beyond_python_s_calendar_is_read_row_by_row_too() -> None:
    writer = record(("t", {"type": "long", "logicalType": "timestamp-millis"}))
    new = {"name": "n", "type": {"type": "map", "values": "int"}, "default": {}}
    payload = encode(record(("t", "long")), {"t": 1_772_366_400_000_000})
    decoded = decoder(writer, record(*writer["fields"], new)).decode(pa.array([payload]))
    assert decoded.errors.to_pylist() == [None]
    assert decoded.columns.column("t").cast("int64").to_pylist() == [1_772_366_400_000_000_000]


@pytest.mark.parametrize("more", [[], [("xs", {"type": "array", "items": "int"})]])
def test_a_time_keeps_its_writer_s_unit(more: Any) -> None:
    """Flat rows are projected column by column, others are resolved row by row."""
    writer = record(("t", {"type": "long", "logicalType": "timestamp-millis"}), *more)
    reader = record(("t", {"type": "long", "logicalType": "timestamp-micros"}), *more)
    moment = dt.datetime(2026, 11, 17, 9, 18, 17, 123000, tzinfo=dt.UTC)
    ((row, error),) = read([encode(writer, {"t": moment, "xs": []})], writer, reader)
    assert (row["t"], error) == (moment, None)


def test_tombstones_are_rows_of_nulls() -> None:
    assert read([None], FLAT) == [(dict.fromkeys(("id", "name", "ok", "n")), None)]


def test_bad_nested_payloads_have_an_error_too() -> None:
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


def test_a_reader_may_rename_a_field_by_an_alias() -> None:
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
        (
            '{"type": "record", "name": "R", "fields": [{"name": "x", "type": "Absent"}]}',
            "Absent",
        ),
        (json.dumps(record(("x", {"type": "array", "items": "null"}))), "take no bytes"),
        (json.dumps(record(("x", ["null", "Event"]))), "contains itself.* recursiveFieldMaxDepth"),
        ("[" * 100_000, "cannot be read"),
        ("null", "cannot be read"),
        ("17", "cannot be read"),
    ],
)
def test_a_schema_that_rows_cannot_have_is_refused(schema: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        AvroDecoder(schema, schema).schema  # noqa: B018


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


POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
MIXED = record(
    ("before", "long"),
    ("u", ["null", "string", "int", "long", POINT, COLOUR, {"type": "bytes"}]),
    ("after", "string"),
)
MEMBERS = [f"member{number}" for number in range(6)]
BRANCHES: list[tuple[Any, dict[str, Any] | None]] = [
    (None, None),
    ("Grüße", {"member0": "Grüße"}),
    (7, {"member1": 7}),
    (1 << 40, {"member2": 1 << 40}),
    ({"x": -3}, {"member3": {"x": -3}}),
    (("Colour", "BLUE"), {"member4": "BLUE"}),
    (b"\xff", {"member5": b"\xff"}),
]


def mixed(value: Any) -> bytes:
    return encode(MIXED, {"before": 1, "u": value, "after": "end"})


@pytest.mark.parametrize(("value", "member"), BRANCHES)
def test_a_union_of_several_types_is_a_struct_of_members(
    value: Any, member: dict[str, Any] | None
) -> None:
    """As Spark's `from_avro` has it."""
    ((row, error),) = read([mixed(value)], MIXED)
    expected = None if member is None else dict.fromkeys(MEMBERS) | member
    assert (row, error) == ({"before": 1, "u": expected, "after": "end"}, None)


def test_members_are_null_where_a_payload_is_missing_or_bad() -> None:
    rows = read([None, b"\x02\x63", mixed(7)], MIXED)
    assert [row["u"] for row, _ in rows[:2]] == [None, None]
    assert [error is None for _, error in rows] == [True, False, True]
    assert rows[2][0]["u"]["member1"] == 7


def test_a_union_within_an_array_is_a_struct_of_members() -> None:
    schema = record(("us", {"type": "array", "items": ["null", "long", "int", "string"]}))
    assert decoder(schema).schema.field("us").type.value_type.num_fields == 3
    payload = b"\x08\x02\x0e\x04\x0e\x00\x06\x02a\x00"
    ((row, error),) = read([payload], schema)
    none = dict.fromkeys(("member0", "member1", "member2"))
    members = [none | {"member0": 7}, none | {"member1": 7}, None, none | {"member2": "a"}]
    assert (row, error) == ({"us": members}, None)


@pytest.mark.parametrize("value", [None, "Grüße", 7, {"x": -3}])
def test_a_reader_with_its_members_in_another_order_finds_them(value: Any) -> None:
    reader = record(("u", ["null", POINT, "string", "long"]))
    writer = record(("u", ["null", "string", "int", POINT]))
    ((row, error),) = read([encode(writer, {"u": value})], writer, reader)
    assert error is None
    found = [one for one in (row["u"] or {}).values() if one is not None]
    assert found == ([] if value is None else [value])


def test_a_reader_that_adds_a_column_keeps_members() -> None:
    reader = {**MIXED, "fields": [*MIXED["fields"], {"name": "n", "type": "int", "default": 3}]}
    ((row, error),) = read([mixed(7)], MIXED, reader)
    assert (row["u"]["member1"], row["n"], error) == (7, 3, None)


@pytest.mark.parametrize(("type_", "value"), [*SHAPES, *((MIXED["fields"][1]["type"], "x"),)])
def test_rows_equal_columns(type_: Any, value: Any) -> None:
    """Flat schemas are read by compiled code; the row reader agrees with it."""
    schema = record(("before", "int"), ("x", type_), ("after", "string"))
    payload = encode(schema, {"before": 7, "x": value, "after": "end"})
    made = decoder(schema)
    plain = RowReader(made.writer, made.reader).record(payload)
    assert pa.RecordBatch.from_pylist([plain], made.schema).to_pylist() == [
        row for row, _ in read([payload], schema)
    ]


@pytest.mark.parametrize("payload", [GOOD[:-1], GOOD + b"x", b"\xff" * 11, b"\x02\x09ab", b""])
def test_plain_rows_refuse_the_payloads_that_columns_refuse(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        RowReader(decoder(FLAT).writer, decoder(FLAT).reader).record(payload)


LIST = record(("id", "int"), ("next", ["null", "Event"]))


def chain(length: int) -> bytes:
    return b"".join(b"\x02\x02" for _ in range(length - 1)) + b"\x02\x00"


@pytest.mark.parametrize(
    ("depth", "row"),
    [
        (1, {"id": 1}),
        (2, {"id": 1, "next": {"id": 1}}),
        (3, {"id": 1, "next": {"id": 1, "next": {"id": 1}}}),
    ],
)
def test_a_recursive_record_is_limited_in_depth(depth: int, row: Any) -> None:
    """As Spark's recursiveFieldMaxDepth has it: 1 leaves out what would hold the record again."""
    text = json.dumps(LIST)
    made = AvroDecoder(text, text, recursive_depth_max=depth)
    decoded = made.decode(pa.array([chain(5), None, b"\x02"]))
    assert decoded.columns.to_pylist()[0] == row
    assert [error is None for error in decoded.errors.to_pylist()] == [True, True, False]


def test_a_tree_is_cut_off_where_its_children_begin() -> None:
    tree = record(("name", "string"), ("children", {"type": "array", "items": "Event"}))
    value = {"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": []}]}]}
    text = json.dumps(tree)
    made = AvroDecoder(text, text, recursive_depth_max=2)
    (row,) = made.decode(pa.array([encode(tree, value)])).columns.to_pylist()
    assert row == {"name": "a", "children": [{"name": "b"}]}


@pytest.mark.parametrize("is_resolved", [False, True])
def test_a_payload_that_nests_without_end_is_a_bad_row(is_resolved: bool) -> None:
    reader = record(("id", "long"), ("next", ["null", "Event"])) if is_resolved else LIST
    made = AvroDecoder(json.dumps(LIST), json.dumps(reader), recursive_depth_max=2)
    decoded = made.decode(pa.array([chain(500_000), chain(3)]))
    assert decoded.errors.to_pylist() == [
        "not a record of this Avro schema: it nests too deep",
        None,
    ]
    assert decoded.columns.to_pylist()[1] == {"id": 1, "next": {"id": 1}}


def test_a_recursive_record_that_grows_too_large_is_refused() -> None:
    many = record(*((f"f{number}", ["null", "Event"]) for number in range(5)), ("id", "int"))
    with pytest.raises(
        InvalidSchema, match=r"more than 20,000 parts.*lower recursiveFieldMaxDepth"
    ):
        AvroDecoder(json.dumps(many), json.dumps(many), recursive_depth_max=15).schema  # noqa: B018
