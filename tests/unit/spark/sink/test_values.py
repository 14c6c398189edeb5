"""Rows as JSON."""

import datetime
import json
from decimal import Decimal

import pyarrow as pa

from headrace.spark.sink.values import json_values


def test_types_are_converted_as_by_spark() -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=datetime.UTC)
    batch = pa.record_batch(
        {
            "n": pa.array([1], pa.int64()),
            "price": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            "at": pa.array([at], pa.timestamp("us", tz="UTC")),
            "day": pa.array([at.date()]),
            "raw": pa.array([b"\x00\x01"]),
            "tags": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
            "inner": pa.array([{"x": 1, "y": None}]),
        }
    )
    (value,) = json_values(batch)
    assert value is not None
    assert json.loads(value) == {
        "n": 1,
        "price": 1.5,
        "at": "2026-01-02T03:04:05.000600Z",
        "day": "2026-01-02",
        "raw": "AAE=",
        "tags": {"a": 1},
        "inner": {"x": 1, "y": None},
    }


def test_columns_that_are_null_are_left_out_and_a_row_of_nulls_is_a_tombstone() -> None:
    batch = pa.record_batch({"a": pa.array([1, None]), "b": pa.array([None, None], pa.int32())})
    assert json_values(batch) == [b'{"a":1}', None]


def test_times_beyond_python_s_years_are_written_as_spark_writes_them() -> None:
    far = pa.array([1_772_366_400_000 * 1_000_000], pa.timestamp("us", "UTC"))
    seen = pa.MapArray.from_arrays([0, 1], pa.array(["a"]), far)
    (value,) = json_values(pa.record_batch({"at": far, "seen": seen}))
    assert value == b'{"at":"+58134-01-21T00:00:00Z","seen":{"a":"+58134-01-21T00:00:00Z"}}'
