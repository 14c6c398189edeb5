"""The work of a batch's tasks: files for the table, or the reason of a rejection."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.errors import IncompatibleSchema
from headrace.pipelines.running.flows.batch_files import FileTask, fitted
from headrace.pipelines.running.flows.expectations import RowChecks

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


def test_rows_take_the_columns_of_their_table() -> None:
    rows = fitted(pa.record_batch({"more": ["x"], "id": pa.array([1], pa.int32())}), SCHEMA)
    assert rows.schema == SCHEMA
    assert rows.to_pylist() == [{"id": 1, "name": None}]


def test_nulls_in_a_required_column_are_reported_and_leave_no_file(tmp_path: Path) -> None:
    task = FileTask(str(tmp_path), SCHEMA, (), None, RowChecks.of([], "trusted.t", "f"), NOW)
    with pytest.raises(IncompatibleSchema, match="column id is required and null in 1 of 2 rows"):
        list(task(iter([pa.record_batch({"id": [7, 8]}), pa.record_batch({"id": [1, None]})])))
    assert not list(tmp_path.rglob("*.parquet"))
