"""Unique keys against a table: exact, whatever is not read of it."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.pipelines.model import Expectation, UniqueKey, Violation
from headrace.pipelines.running.flows import known_keys
from headrace.pipelines.running.flows.intake import Intake
from headrace.pipelines.running.flows.targets import AppendTarget
from headrace.pipelines.running.tables.places import TablePlace
from tests.builders.lakes import appended

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64())])
NONE = Lineage()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Lake(tmp_path).create("raw.t", SCHEMA)
    for first in (0, 10, 20):
        appended(made, [{"id": first + n, "name": f"n{first + n}", "n": 0} for n in range(10)])
    appended(made, [{"id": None, "name": "none", "n": 0}])
    return made


def unique(root: Path, *columns: str) -> AppendTarget:
    rule = Expectation("one", UniqueKey(columns), Violation.DROP)
    return AppendTarget(Intake(TablePlace(str(root), "raw.t", 1), None, "f", (rule,)))


@pytest.mark.parametrize("columns", [("id",), ("name",), ("name", "id")])
def test_rows_whose_key_the_table_has_are_dropped(
    columns: tuple[str, ...], table: Table, tmp_path: Path, spark: SparkSession
) -> None:
    given = [(5, "n5"), (None, "none"), (25, "n25"), (30, "n30"), (31, "n31"), (31, "n31")]
    rows = [{"id": key, "name": name, "n": 1} for key, name in given]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA))
    outcome = unique(tmp_path, *columns).write(frame, Token("w", 0), NONE)
    added = table.rows(where="n = 1").to_pylist()
    assert sorted(row["id"] for row in added) == [30, 31]
    assert outcome.dropped == 4
    assert not list((tmp_path / "_headrace" / "keys").rglob("*.parquet"))


def test_a_batch_without_rows_has_no_keys(
    table: Table, tmp_path: Path, spark: SparkSession
) -> None:
    """A watermark makes such batches, and so does a condition that no record of a batch meets."""
    before = table.rows().num_rows
    frame = spark.createDataFrame(SCHEMA.empty_table())
    outcome = unique(tmp_path, "id").write(frame, Token("w", 0), NONE)
    assert (outcome.rows_in, table.rows().num_rows) == (0, before)
    assert table.has(Token("w", 0))


def test_files_that_cannot_have_a_key_are_not_read(
    table: Table, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[tuple[int, int] | None]] = []

    def noted(_: SparkSession, groups: list[tuple[int, ...]], __: object) -> dict[str, list[str]]:
        bounds = table.file_bounds(table.version, ["id"])
        read.append([bounds[number].get("id") for group in groups for number in group])
        return {}

    monkeypatch.setattr(known_keys, "work_by_group", noted)
    target = unique(tmp_path, "id")
    for batch, first in enumerate((50, 12)):
        rows = spark.range(first, first + 3, 1, 1).selectExpr("id", "'x' AS name", "1L AS n")
        target.write(rows, Token("w", batch), NONE)
    # The file whose only key is null has no bounds.
    assert read[0] == [None]
    assert set(read[1]) == {None, (10, 19)}
