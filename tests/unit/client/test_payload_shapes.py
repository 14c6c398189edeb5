"""Formats of payloads, guessed from their bytes."""

import pytest

from headrace.client.payload_shapes import (
    PayloadKind,
    csv_ddl,
    ddl_of_fields,
    delimiter_of,
    shape_of,
    types_of,
)
from headrace.spark.decoding.ddl import schema_of


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (None, PayloadKind.NULL),
        (b"", PayloadKind.EMPTY),
        (b"  \n", PayloadKind.EMPTY),
        ("\u00a0\u2003".encode(), PayloadKind.EMPTY),
        (b'{"a": 1}', PayloadKind.JSON),
        (b" [1, 2]", PayloadKind.JSON),
        (b'{"a": 1', PayloadKind.TEXT),
        (b"\x00\x00\x00\x00\x07rest", PayloadKind.WIRE_FORMAT),
        (b"\x00\xff\x00\x00\x07rest", PayloadKind.BINARY),
        (b"1,2,3", PayloadKind.CSV),
        (b"a;b", PayloadKind.CSV),
        (b"<a><b/></a>", PayloadKind.XML),
        (b"Hello, world", PayloadKind.TEXT),
        (b"just text", PayloadKind.TEXT),
        (b"\xff\xfe", PayloadKind.BINARY),
        (b"a\x01b", PayloadKind.BINARY),
        (b"[" * 100_000, PayloadKind.TEXT),
    ],
)
def test_payloads_are_classified_by_kind(payload: bytes | None, kind: PayloadKind) -> None:
    assert shape_of(payload).kind is kind


def test_a_wire_format_has_the_id_of_its_schema() -> None:
    assert shape_of(b"\x00\x00\x00\x01\x00rest").detail == "schema 256"


def test_objects_with_the_same_fields_have_the_same_shape() -> None:
    assert shape_of(b'{"a": 1, "b": "x"}') != shape_of(b'{"a": 2}')
    assert shape_of(b'{"a": 1}').detail == shape_of(b'{"a": 2}').detail


def test_columns_take_all_values_that_were_seen() -> None:
    found = types_of(
        [
            {"id": 1, "price": 2, "at": "2026-11-17T09:00:00Z", "day": "2026-11-17", "ok": True},
            {"id": 2, "price": 2.5, "at": None, "tags": ["a"], "in": {"x": 1}, "mixed": 1},
            {"id": 3, "tags": [], "in": {"y z": [1.5]}, "mixed": "m", "none": None, "big": 1 << 70},
        ]
    )
    assert found == {
        "id": "BIGINT",
        "price": "DOUBLE",
        "at": "TIMESTAMP",
        "day": "DATE",
        "ok": "BOOLEAN",
        "tags": "ARRAY<STRING>",
        "in": "STRUCT<x: BIGINT, `y z`: ARRAY<DOUBLE>>",
        "mixed": "STRING",
        "none": "",
        "big": "DECIMAL(38,0)",
    }
    assert schema_of(ddl_of_fields(found)).names == list(found)


def test_very_deep_values_end_as_text() -> None:
    deep: object = 1
    for _ in range(50):
        deep = {"a": deep}
    assert "STRING" in types_of([{"x": deep}])["x"]


def test_lines_of_csv_have_columns_by_number() -> None:
    lines = ["1;2026-11-17;x", "2;;y", '3.5;2026-11-18;"z"']
    assert delimiter_of(lines) == ";"
    assert csv_ddl(lines, ";") == "c1 DOUBLE, c2 DATE, c3 STRING"


def test_lines_of_several_lengths_are_no_csv() -> None:
    assert delimiter_of(["a,b", "a,b,c"]) is None
