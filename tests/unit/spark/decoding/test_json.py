"""JSON payloads to typed columns."""

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.spark.decoding.ddl import schema_of
from headrace.spark.decoding.errors import InvalidSchema
from headrace.spark.decoding.json.decoder import JsonDecoder


def read(ddl: str, *payloads: bytes | None) -> list[tuple[dict[str, Any], str | None]]:
    """Each payload's row and error."""
    decoded = JsonDecoder(schema_of(ddl)).decode(pa.array(payloads, pa.binary()))
    decoded.columns.validate(full=True)
    return list(zip(decoded.columns.to_pylist(), decoded.errors.to_pylist(), strict=True))


def value(ddl_type: str, json_text: str) -> Any:
    """Return a value as a column of this type has it."""
    ((row, error),) = read(f"x {ddl_type}", f'{{"x": {json_text}}}'.encode())
    assert error is None
    return row["x"]


def error(ddl: str, payload: bytes) -> str | None:
    ((row, found),) = read(ddl, payload)
    assert all(part is None for part in row.values())
    return found


@pytest.mark.parametrize(
    ("ddl_type", "json_text", "expected"),
    [
        ("BIGINT", "-9223372036854775808", -(1 << 63)),
        ("BIGINT", "9223372036854775807", (1 << 63) - 1),
        ("INT", "-0", 0),
        ("TINYINT", "-128", -128),
        ("DOUBLE", "1", 1.0),
        ("DOUBLE", "0.1", 0.1),
        ("DOUBLE", "-12.5e-3", -0.0125),
        ("DOUBLE", "1.7976931348623157e308", 1.7976931348623157e308),
        ("DOUBLE", "123456789012345678901234567890", 123456789012345678901234567890.0),
        ("DOUBLE", "1e400", float("inf")),
        ("DOUBLE", '"-Infinity"', float("-inf")),
        ("FLOAT", "0.5", 0.5),
        ("BOOLEAN", "true", True),
        ("BOOLEAN", "false", False),
        ("STRING", '"plain"', "plain"),
        ("STRING", '"a\\"b\\\\c\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"', 'a"b\\c/\b\f\n\r\té😀'),
        ("STRING", '"\\ud800x"', "\ufffdx"),
        ("STRING", '"Grüße"', "Grüße"),
        ("STRING", "12.50", "12.50"),
        ("STRING", '{"a": [1, 2]}', '{"a": [1, 2]}'),
        ("STRING", '""', ""),
        ("STRING", "null", None),
        ("BINARY", '"aGk="', b"hi"),
        ("DATE", '"2024-02-29"', dt.date(2024, 2, 29)),
        (
            "TIMESTAMP",
            '"2026-11-17T09:18:17.123456Z"',
            dt.datetime(2026, 11, 17, 9, 18, 17, 123456, dt.UTC),
        ),
        (
            "TIMESTAMP",
            '"2026-11-17 09:18:17+02:00"',
            dt.datetime(2026, 11, 17, 7, 18, 17, 0, dt.UTC),
        ),
        ("TIMESTAMP", '"2026-11-17T09:18"', dt.datetime(2026, 11, 17, 9, 18, tzinfo=dt.UTC)),
        ("TIMESTAMP", '"1969-12-31"', dt.datetime(1969, 12, 31, tzinfo=dt.UTC)),
        ("TIMESTAMP", "253402300799", dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)),
        ("TIMESTAMP", "-62135596800", dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
        ("TIMESTAMP", "1700000000", dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)),
        ("TIMESTAMP_NTZ", '"2026-11-17T09:18:17"', dt.datetime(2026, 11, 17, 9, 18, 17)),
        ("DECIMAL(10,2)", "12.345", Decimal("12.35")),
        ("DECIMAL(10,2)", "-12.344", Decimal("-12.34")),
        ("DECIMAL(10,2)", '"7"', Decimal("7.00")),
        ("DECIMAL(10,2)", "1e3", Decimal("1000.00")),
        (
            "DECIMAL(38,3)",
            "12345678901234567890123456789012345.678",
            Decimal("12345678901234567890123456789012345.678"),
        ),
        ("DECIMAL(38,0)", "-12345678901234567890123", Decimal("-12345678901234567890123")),
        ("ARRAY<INT>", "[ 1 , null, 3 ]", [1, None, 3]),
        ("ARRAY<INT>", "[]", []),
        ("ARRAY<ARRAY<STRING>>", '[["a"], [], ["b", "c"]]', [["a"], [], ["b", "c"]]),
        ("MAP<STRING, INT>", '{"a": 1, "b\\n": null}', [("a", 1), ("b\n", None)]),
        (
            "STRUCT<a: INT, b: STRUCT<c: STRING>>",
            '{"b": {"c": "x"}, "z": 1}',
            {"a": None, "b": {"c": "x"}},
        ),
        ("STRUCT<a: INT>", "null", None),
        ("ARRAY<STRUCT<a: INT>>", '[{"a": 1}, null, {}]', [{"a": 1}, None, {"a": None}]),
    ],
)
def test_a_value_is_read_as_by_spark(ddl_type: str, json_text: str, expected: Any) -> None:
    assert value(ddl_type, json_text) == expected


def test_a_double_that_is_not_a_number_is_read() -> None:
    assert value("DOUBLE", '"NaN"') != value("DOUBLE", '"NaN"')


def test_missing_fields_are_null_and_further_ones_are_passed_over() -> None:
    rows = read("a INT, b STRING", b'{"c": {"a": [9, "}"]}, "b": "x"}', b"{}", b' {\n"a":\t1\r} ')
    assert rows == [
        ({"a": None, "b": "x"}, None),
        ({"a": None, "b": None}, None),
        ({"a": 1, "b": None}, None),
    ]


def test_the_last_of_two_fields_with_one_name_counts() -> None:
    assert read("a INT", b'{"a": 1, "a": 2}') == [({"a": 2}, None)]


def test_keys_may_be_escaped_and_names_may_need_it() -> None:
    assert read('a INT, `q"\\` INT', b'{"\\u0061": 1, "q\\"\\\\": 2}') == [
        ({"a": 1, 'q"\\': 2}, None)
    ]


def test_a_key_that_looks_like_a_name_with_a_quote_is_not_json() -> None:
    assert error('`a"b` INT', b'{"a"b": 1}') == "not JSON: unexpected 'b\": 1}' at byte 4"


def test_tombstones_and_nulls_are_rows_of_nulls_without_an_error() -> None:
    assert read("a INT NOT NULL", None, b"null") == [({"a": None}, None)] * 2


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "the payload is empty"),
        (b" \n", "the payload is empty"),
        (b"[1]", "not a JSON object but '[1]'"),
        (b"17", "not a JSON object but '17'"),
        (b"{", "not JSON: ends too early, at byte 1"),
        (b'{"a": 1', "not JSON: ends too early, at byte 7"),
        (b'{"a": 1}}', "not JSON: '}' follows the value at byte 8"),
        (b'{"a": 01}', "not JSON: unexpected '1}' at byte 7"),
        (b'{"a": 1.}', "not JSON: unexpected '}' at byte 8"),
        (b'{"a": +1}', "not JSON: unexpected '+1}' at byte 6"),
        (b'{"a": tru}', "not JSON: unexpected 'tru}' at byte 6"),
        (b'{"a": 1,}', "not JSON: unexpected '}' at byte 8"),
        (b"{a: 1}", "not JSON: unexpected 'a: 1}' at byte 1"),
        (b"{'a': 1}", "not JSON: unexpected \"'a': 1}\" at byte 1"),
        (b'{"b": [1, {"c": 2]}', "not JSON: unexpected ']}' at byte 17"),
        (b'{"b": "\x01"}', "not JSON: a control character within a string at byte 7"),
        (b'{"b": "\\x"}', "not JSON: a bad escape within a string at byte 8"),
        (b'{"b": "\\u12g4"}', "not JSON: a bad escape within a string at byte 11"),
        (b'{"b": "\xff"}', "the payload is not UTF-8"),
        (b'{"b": ' + b"[" * 200, "not read: nested too deeply at byte 134"),
        (b'{"a": "1"}', "a: '1' is not a INT"),
        (b'{"a": 1.0}', "a: '1.0' is not a INT"),
        (b'{"a": 2147483648}', "a: '2147483648' is not a INT"),
        (b'{"a": [1]}', "a: '[1]' is not a INT"),
    ],
)
def test_a_bad_payload_has_an_error_with_the_reason(payload: bytes, expected: str) -> None:
    assert error("a INT", payload) == expected


@pytest.mark.parametrize(
    ("ddl", "payload", "expected"),
    [
        ("s STRUCT<a: INT>", b'{"s": {"a": "x"}}', "s.a: 'x' is not a INT"),
        ("s STRUCT<a: INT>", b'{"s": 1}', "s: '1' is not a STRUCT<a: INT>"),
        ("s ARRAY<INT>", b'{"s": [1, "x"]}', "s[]: 'x' is not a INT"),
        ("m MAP<STRING, DATE>", b'{"m": {"k": "x"}}', "m[]: 'x' is not a DATE"),
        ("d DATE", b'{"d": "2023-02-29"}', "d: '2023-02-29' is not a DATE"),
        ("t TIMESTAMP", b'{"t": "2023-02-28T25:00"}', "t: '2023-02-28T25:00' is not a TIMESTAMP"),
        (
            "t TIMESTAMP",
            b'{"t": 1772366400000}',
            "t: '1772366400000' seconds since 1970 are beyond the years 1 to 9999; are they"
            " milliseconds?",
        ),
        (
            "t TIMESTAMP",
            b'{"t": -62135596801}',
            "t: '-62135596801' seconds since 1970 are beyond the years 1 to 9999; are they"
            " milliseconds?",
        ),
        (
            "t TIMESTAMP",
            b'{"t": 99999999999999999999}',
            "t: '99999999999999999999' seconds since 1970 are beyond the years 1 to 9999; are they"
            " milliseconds?",
        ),
        (
            "t TIMESTAMP_NTZ",
            b'{"t": "2023-02-28T05:00Z"}',
            "t: '2023-02-28T05:00Z' is not a TIMESTAMP_NTZ",
        ),
        ("b BINARY", b'{"b": "***"}', "b: '***' is not a BINARY"),
        ("x DECIMAL(4,2)", b'{"x": 100}', "x: '100' is not a DECIMAL(4,2)"),
        ("x DECIMAL(4,2)", b'{"x": 1e999999999}', "x: '1e999999999' is not a DECIMAL(4,2)"),
        ("x BIGINT", b'{"x": 9223372036854775808}', "x: '9223372036854775808' is not a BIGINT"),
        ("b BOOLEAN", b'{"b": 1}', "b: '1' is not a BOOLEAN"),
        ("d DOUBLE", b'{"d": "1.5"}', "d: '1.5' is not a DOUBLE"),
        ("a INT NOT NULL", b"{}", "a is NOT NULL but there is no value"),
        (
            "s STRUCT<a: INT NOT NULL>",
            b'{"s": {"a": null}}',
            "s.a is NOT NULL but there is no value",
        ),
    ],
)
def test_a_value_that_does_not_fit_names_its_field(ddl: str, payload: bytes, expected: str) -> None:
    assert error(ddl, payload) == expected


def test_a_long_value_is_shown_in_part() -> None:
    found = error("a INT", b'{"a": "' + b"x" * 500 + b'"}')
    assert found == f"a: '{'x' * 40}'... is not a INT"


def test_one_bad_row_leaves_its_neighbours_whole() -> None:
    rows = read("a INT, b STRING", b'{"a":1,"b":"x"}', b'{"a":"?","b":"y"}', b'{"a":3,"b":"z"}')
    assert rows[0] == ({"a": 1, "b": "x"}, None)
    assert rows[1] == ({"a": None, "b": None}, "a: '?' is not a INT")
    assert rows[2] == ({"a": 3, "b": "z"}, None)


def test_a_slice_of_payloads_is_read_from_its_own_beginning() -> None:
    payloads = pa.array([b'{"a":1}', b'{"a":2}', b'{"a":', b'{"a":4}'], pa.binary()).slice(1, 2)
    decoded = JsonDecoder(schema_of("a INT")).decode(payloads)
    assert decoded.columns.to_pylist() == [{"a": 2}, {"a": None}]
    assert decoded.errors.to_pylist() == [None, "not JSON: ends too early, at byte 5"]


def test_zero_payloads_are_zero_rows() -> None:
    assert read("a INT, s STRUCT<b: ARRAY<INT>>") == []


def test_columns_have_sparks_types_and_may_all_be_null() -> None:
    schema = JsonDecoder(schema_of("a INT NOT NULL, s STRUCT<b: INT NOT NULL>")).schema
    assert schema.field("a").nullable
    assert schema.field("s").type.field("b").nullable


def test_a_map_needs_strings_as_keys() -> None:
    with pytest.raises(InvalidSchema, match=r"s\.m: keys of a JSON object are strings"):
        JsonDecoder(schema_of("s STRUCT<m: MAP<INT, INT>>"))


def test_a_decoder_can_be_sent_to_a_worker() -> None:
    decoder = pickle.loads(pickle.dumps(JsonDecoder(schema_of("a INT"))))
    assert decoder.decode(pa.array([b'{"a":1}'])).columns.to_pylist() == [{"a": 1}]
