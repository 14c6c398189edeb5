"""Answers in three forms, each with what had to be left out."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.http.errors import BadRequest, NotAcceptable
from headrace.serving.answers import (
    Answer,
    Column,
    bounded,
    chosen_format,
    unique,
    write_arrow,
    write_csv,
    write_json,
)

VALUES = {
    "whole": pa.array([2**62, None]),
    "exact": pa.array([Decimal("1.50"), None]),
    "wide": pa.array([Decimal(10**30), None], pa.decimal128(38, 0)),
    "real": pa.array([float("nan"), 0.5]),
    "text": pa.array(['say "a,b"', "ö\n"]),
    "bytes": pa.array([b"\x00\xff", None]),
    "at": pa.array([datetime(2026, 3, 1, 12, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "day": pa.array([date(2026, 3, 1), None]),
    "list": pa.array([[1, 2], None]),
    "record": pa.array([{"a": 1}, None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "span": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
}


def answer(columns: dict[str, Any]) -> Answer:
    names = [Column(name, "ANY") for name in columns]
    return Answer(names, pa.table(columns), None, {"refined.orders": 3}, ())


def reader(*batches: list[int]) -> pa.RecordBatchReader:
    schema = pa.schema([("n", pa.int64())])
    made = [pa.record_batch({"n": batch}, schema=schema) for batch in batches]
    return pa.RecordBatchReader.from_batches(schema, made)


def test_json_keeps_every_digit() -> None:
    text = write_json(answer(VALUES)).decode()
    assert f'"whole":{2**62}' in text
    assert '"exact":1.50' in text
    assert f'"wide":{10**30}' in text


def test_every_type_has_a_form_in_json() -> None:
    first, second = json.loads(write_json(answer(VALUES)))["rows"]
    assert first["at"] == "2026-03-01T12:00:00Z"
    assert (first["real"], first["bytes"], first["day"]) == (None, "AP8=", "2026-03-01")
    assert (first["list"], first["record"], second["map"]) == ([1, 2], {"a": 1}, None)


def test_csv_writes_nested_values_as_json() -> None:
    text = write_csv(answer({name: VALUES[name] for name in ("list", "record", "text")})).decode()
    assert text == '"list","record","text"\n"[1,2]","{""a"":1}","say ""a,b"""\n,,"ö\n"\n'


def test_csv_writes_texts_of_every_type_as_texts() -> None:
    choice = pa.array(["a", None, 'b"c']).dictionary_encode()
    assert write_csv(answer({"choice": choice})) == b'"choice"\n"a"\n\n"b""c"\n'


def test_csv_takes_every_type() -> None:
    assert write_csv(answer(VALUES)).count(b'"text"') == 1


def test_arrow_keeps_the_types() -> None:
    comparable = {name: values for name, values in VALUES.items() if name != "real"}
    table = pa.ipc.open_stream(io.BytesIO(write_arrow(answer(comparable)))).read_all()
    assert table.equals(pa.table(comparable))


@pytest.mark.parametrize(
    ("rows_max", "rows", "cut"), [(5, 5, None), (6, 5, None), (4, 4, "rows"), (0, 0, "rows")]
)
def test_rows_are_cut_at_the_limit_and_the_cut_is_reported(
    rows_max: int, rows: int, cut: str
) -> None:
    table, found = bounded(reader([1, 2, 3], [4, 5]), ["n"], rows_max, 10**9)
    assert (table.num_rows, found) == (rows, cut)


def test_large_rows_are_cut_by_their_bytes() -> None:
    table, cut = bounded(reader([1, 2, 3], [4, 5, 6]), ["n"], 100, 40)
    assert (table.num_rows, cut) == (5, "bytes")


def test_rows_that_are_few_and_large_are_sent_as_far_as_they_fit() -> None:
    """Three of five texts in one batch fit; a limit in rows beyond them does not cut them."""
    batch = pa.record_batch({"n": ["x" * 1_000] * 5})
    large = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    table, cut = bounded(large, ["n"], 4, 3_100)
    assert (table.num_rows, cut) == (3, "bytes")


def test_every_column_has_a_name_of_its_own() -> None:
    assert unique(["id", "n", "id", "id_1", "id"]) == ["id", "n", "id_2", "id_1", "id_3"]


@pytest.mark.parametrize(
    ("name", "accept", "chosen"),
    [
        (None, "", "json"),
        ("CSV", "application/json", "csv"),
        (None, "text/csv", "csv"),
        (None, "application/vnd.apache.arrow.stream", "arrow"),
    ],
)
def test_the_form_is_chosen_by_parameter_then_by_header(
    name: str | None, accept: str, chosen: str
) -> None:
    assert chosen_format(name, accept).name == chosen


def test_an_unknown_answer_format_is_refused() -> None:
    with pytest.raises(BadRequest, match="json, arrow, csv"):
        chosen_format("xml", "")
    with pytest.raises(NotAcceptable):
        chosen_format(None, "image/png")


def test_headers_have_versions_and_cuts() -> None:
    versions = {"refined.a": 1, "refined.b": 2}
    answer = Answer([], pa.table({"n": [1]}), "rows", versions, ["refined.b"])
    assert answer.headers == {
        "Headrace-Rows": "1",
        "Headrace-Versions": "refined.a=1, refined.b=2",
        "Headrace-Cut": "rows",
        "Headrace-Scanned": "refined.b",
    }


def test_times_beyond_python_s_years_are_written_in_every_form() -> None:
    far = 1_772_366_400_000 * 1_000_000
    columns = {
        "at": pa.array([far, 0, None], pa.timestamp("us", "UTC")),
        "day": pa.array([20_513_500, 0, None], pa.int32()).cast(pa.date32()),
    }
    first, second, _ = json.loads(write_json(answer(columns)))["rows"]
    assert first == {"at": "+58134-01-21T00:00:00Z", "day": "+58134-01-21"}
    assert second == {"at": "1970-01-01T00:00:00Z", "day": "1970-01-01"}
    _, *lines = write_csv(answer(columns)).decode().splitlines()
    near = {name: column[1:] for name, column in columns.items()}
    _, *as_usual = write_csv(answer(near)).decode().replace('"', "").splitlines()
    assert lines[0] == '"+58134-01-21 00:00:00Z","+58134-01-21"'
    assert [line.replace('"', "") for line in lines[1:]] == as_usual
