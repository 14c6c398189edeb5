"""CSV payloads to typed columns."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from headrace.spark.decoding.csv.decoder import CsvDecoder
from headrace.spark.decoding.ddl import schema_of
from headrace.spark.decoding.errors import InvalidSchema

DDL = "id BIGINT NOT NULL, name STRING, price DOUBLE, ok BOOLEAN, at TIMESTAMP"


def read(
    *payloads: bytes | None, ddl: str = DDL, **options: Any
) -> list[tuple[tuple[Any, ...], str | None]]:
    decoded = CsvDecoder(schema_of(ddl), **options).decode(pa.array(payloads, pa.binary()))
    decoded.columns.validate(full=True)
    rows = [tuple(row.values()) for row in decoded.columns.to_pylist()]
    return list(zip(rows, decoded.errors.to_pylist(), strict=True))


def test_a_line_becomes_typed_columns() -> None:
    ((row, error),) = read(b"7,Ada,1.5,TRUE,2020-01-01T00:00:00Z\r\n")
    assert error is None
    assert row == (7, "Ada", 1.5, True, dt.datetime(2020, 1, 1, tzinfo=dt.UTC))


def test_quotes_hold_delimiters_and_quotes() -> None:
    assert read(b'1,"a ""b"", c",,,')[0] == ((1, 'a "b", c', None, None, None), None)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (rb'"a \"b\", c"', 'a "b", c'),
        (rb'"a\\"', "a\\"),
        (rb'"a\\\"b"', 'a\\"b'),
        (rb'"a\nb"', r"a\nb"),
        (rb'"a ""b"" \"c\""', 'a "b" "c"'),
        (rb"a\"b", r"a\"b"),
        (rb'"\\\\"', r"\\"),
        (b'"Gr\xc3\xbc\\"\xc3\x9fe"', 'Grü"ße'),
    ],
)
def test_quotes_may_be_escaped_by_a_sign(payload: bytes, text: str) -> None:
    """As Spark's option `escape` has it: within quotes, before a quote and before itself."""
    line = payload + b",7"
    assert read(line, ddl="s STRING, n INT", escape="\\") == [((text, 7), None)]


@pytest.mark.parametrize("payload", [rb'"a\"', rb'"a\",7', rb'"a\\\",7'])
def test_a_quote_that_only_seems_to_close_is_reported(payload: bytes) -> None:
    ((_, error),) = read(payload, ddl="s STRING, n INT", escape="\\")
    assert error == "not CSV: a quote is not closed, at byte 1"


def test_without_the_option_a_backslash_is_a_letter_like_others() -> None:
    assert read(rb'"a\",7', ddl="s STRING, n INT") == [(("a\\", 7), None)]


def test_a_number_with_escapes_is_an_error() -> None:
    ((_, error),) = read(rb'"1\"2"', ddl="n INT", escape="\\")
    assert error == "n: '1\\\\\"2' is not a INT"


def test_an_empty_field_is_null_and_a_quoted_one_is_an_empty_string() -> None:
    assert read(b'1,"",,,')[0] == ((1, "", None, None, None), None)
    assert read(b"1,,,,")[0] == ((1, None, None, None, None), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"+7", 7.0), (b"-007.50", -7.5), (b"1e3", 1000.0), (b"NaN", None), (b"0", 0.0)],
)
def test_numbers_are_read_as_people_write_them(text: bytes, expected: float | None) -> None:
    (((found,), error),) = read(text, ddl="x DOUBLE")
    assert error is None
    assert found == expected if expected is not None else found != found


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "the payload is empty"),
        (b"1,2", "not CSV of this schema: fewer fields than the 5 columns"),
        (b"1,,,,,", "not CSV of this schema: more fields than the 5 columns"),
        (b'1,"a,,,', "not CSV: a quote is not closed, at byte 3"),
        (b'1,"a"b,,,', "not CSV: 'b,,,' follows a closing quote at byte 5"),
        (b"x,,,,", "id: 'x' is not a BIGINT"),
        (b"1.5,,,,", "id: '1.5' is not a BIGINT"),
        (b"1,,dear,,", "price: 'dear' is not a DOUBLE"),
        (b"1,,,maybe,", "ok: 'maybe' is not a BOOLEAN"),
        (b"1,,,,noon", "at: 'noon' is not a TIMESTAMP"),
        (b",a,,,", "id is NOT NULL but there is no value"),
        (b"1,\xff,,,", "the payload is not UTF-8"),
    ],
)
def test_a_bad_line_has_an_error_with_the_reason(payload: bytes, expected: str) -> None:
    assert read(payload) == [((None,) * 5, expected)]


def test_a_tombstone_is_a_row_of_nulls() -> None:
    assert read(None) == [((None,) * 5, None)]


def test_a_header_is_passed_over_if_one_is_expected() -> None:
    header = b"id,name,price,ok,at"
    assert read(header, header=True) == [((None,) * 5, None)]
    assert read(header)[0][1] == "id: 'id' is not a BIGINT"


def test_delimiter_and_null_value_are_options() -> None:
    assert read(b"1;NULL", ddl="a INT, b STRING", delimiter=";", null_value="NULL") == [
        ((1, None), None)
    ]


def test_nested_columns_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="tags: a CSV field cannot be ARRAY<STRING>"):
        CsvDecoder(schema_of("tags ARRAY<STRING>"))
