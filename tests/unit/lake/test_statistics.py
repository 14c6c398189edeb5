"""Bounds of columns in Delta's log: never so tight that a reader passes over rows."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.lake.data_files import FileWriter

MOMENT = dt.datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=dt.UTC)


def statistics(place: Path, columns: dict[str, Any]) -> dict[str, Any]:
    table = pa.table(columns)
    writer = FileWriter(place, table.schema)
    writer.write(table)
    (file,) = writer.close()
    found: dict[str, Any] = json.loads(file.stats)
    return found


def test_statistics_cover_numbers_dates_and_nulls(tmp_path: Path) -> None:
    found = statistics(tmp_path, {"n": [3, None, 1], "d": [dt.date(2026, 3, 1), None, None]})
    assert found["numRecords"] == 3
    assert found["minValues"] == {"n": 1, "d": "2026-03-01"}
    assert found["maxValues"] == {"n": 3, "d": "2026-03-01"}
    assert found["nullCount"] == {"n": 1, "d": 2}


def test_times_are_rounded_outwards_to_milliseconds(tmp_path: Path) -> None:
    found = statistics(tmp_path, {"t": pa.array([MOMENT], pa.timestamp("us", tz="UTC"))})
    assert found["minValues"]["t"] == "2026-03-01T12:00:00.123Z"
    assert found["maxValues"]["t"] == "2026-03-01T12:00:00.124Z"


def test_long_texts_are_cut_so_that_the_bound_holds(tmp_path: Path) -> None:
    text = "x" * 100
    found = statistics(tmp_path, {"s": [text]})
    assert found["minValues"]["s"] == "x" * 32
    assert found["maxValues"]["s"] > text
    assert len(found["maxValues"]["s"]) == 33


def test_a_column_with_nan_has_no_bounds(tmp_path: Path) -> None:
    found = statistics(tmp_path, {"f": [1.0, float("nan")], "g": [1.0, 2.0]})
    assert found["minValues"] == {"g": 1.0}
    assert found["maxValues"] == {"g": 2.0}


def test_statistics_of_structs_are_nested(tmp_path: Path) -> None:
    found = statistics(tmp_path, {"s": [{"a": 1, "f": 1.0}, {"a": 5, "f": float("nan")}]})
    assert found["minValues"] == {"s": {"a": 1}}
    assert found["nullCount"] == {"s": {"a": 0, "f": 0}}


def test_only_nulls_have_no_bounds(tmp_path: Path) -> None:
    found = statistics(tmp_path, {"n": pa.array([None, None], pa.int64())})
    assert found["minValues"] == {}
    assert found["nullCount"] == {"n": 2}


def test_names_with_dots_are_not_taken_for_structs(tmp_path: Path) -> None:
    found = statistics(tmp_path, {"s.a": [100], "s": [{"a": 1}]})
    assert found["numRecords"] == 1
    assert found["minValues"] == {}


def test_times_beyond_the_calendar_have_no_bounds(tmp_path: Path) -> None:
    far = pa.array([(1 << 62)], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    assert statistics(tmp_path, {"t": far})["maxValues"] == {}
