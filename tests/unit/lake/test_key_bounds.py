"""Bounds of keys: files that cannot have a key are passed over, and no others."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.lake.catalog import Lake
from headrace.lake.key_bounds import KeyBounds
from tests.builders.lakes import appended

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])
DAY = dt.date(2026, 3, 1)


def bounds(*rows: tuple[int | None, dt.date | None, str]) -> KeyBounds:
    given = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return KeyBounds.of(SCHEMA).with_rows(pa.Table.from_pylist(given, schema=SCHEMA))


def test_whole_numbers_and_dates_have_bounds() -> None:
    found = bounds((5, DAY, "x"), (3, DAY, "a")).document()
    day = (DAY - dt.date(1970, 1, 1)).days
    assert found == {"id": (3, 5), "day": (day, day)}


def test_dates_beyond_python_s_years_have_bounds_too() -> None:
    day = pa.array([20_513_500], pa.int32()).cast(pa.date32())
    found = KeyBounds.of(SCHEMA).with_rows(pa.table({"id": [1], "day": day, "name": ["x"]}))
    assert found.document()["day"] == (20_513_500, 20_513_500)


def test_a_column_with_a_null_rules_nothing_out() -> None:
    found = bounds((5, DAY, "x"), (None, DAY, "a")).with_rows(
        pa.Table.from_pylist([{"id": 1, "day": DAY, "name": "x"}], schema=SCHEMA)
    )
    assert "id" not in found.document()


def test_the_bounds_of_several_tasks_are_one() -> None:
    both = KeyBounds.all_of([{"id": (3, 5), "day": (1, 1)}, {"id": (1, 4)}])
    assert both.document() == {"id": (1, 5)}


def test_files_that_may_have_a_key_are_those_whose_spans_meet() -> None:
    files = [{"id": (0, 9)}, {"id": (10, 19)}, {}, {"id": (5, 10)}, {"other": (0, 0)}]
    assert bounds((10, DAY, "x"), (12, DAY, "y")).numbers_of(files) == [1, 2, 3, 4]


def test_a_table_returns_the_bounds_of_its_files_in_order(tmp_path: Path) -> None:
    table = Lake(tmp_path).create("raw.t", SCHEMA)
    for first in (0, 10, 20):
        appended(table, [{"id": first, "day": DAY, "name": "n"}, {"id": first + 3}])
    told = table.file_bounds(table.version, ["id", "name", "missing"])
    least = [pq.read_table(table.place / file.path)["id"][0].as_py() for file in table.files()]
    assert told == [{"id": (one, one + 3)} for one in least]
