"""Differences between two versions of a table."""

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.errors import VersionGone
from headrace.lake.rewriting import evolve, optimize
from headrace.lake.tables import Table
from headrace.lake.version_differences import difference
from tests.builders.lakes import appended, numbers

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Lake(tmp_path).create("raw.orders", SCHEMA)


def test_added_and_removed_rows_are_found_in_both_directions(table: Table) -> None:
    numbers(table, 1, 2, 2)
    table.upsert(pa.table({"id": [1, 3], "name": ["x", "y"]}), ["id"])
    found = difference(table, 1, 2, 10)
    assert (found.rows_added, found.rows_removed) == (2, 1)
    assert {row["name"] for row in found.added.to_pylist()} == {"x", "y"}
    assert found.removed.to_pylist() == [{"id": 1, "name": "n1"}]
    assert difference(table, 2, 1, 10).rows_added == 1


def test_rows_are_counted_beyond_those_that_are_shown(table: Table) -> None:
    numbers(table, *range(50))
    found = difference(table, 0, 1, 3)
    assert (found.added.num_rows, found.rows_added) == (3, 50)


def test_rewritten_files_are_no_difference(table: Table) -> None:
    numbers(table, 1)
    numbers(table, 2)
    optimize(table)
    found = difference(table, 2, 3, 10)
    assert (found.rows_added, found.rows_removed) == (0, 0)


def test_changes_of_the_schema_are_described_in_words(table: Table) -> None:
    numbers(table, 1)
    evolve(table, pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())]))
    found = difference(table, 1, 2, 10)
    assert found.schema_changes == [
        "column price double was added",
        "column id was int and is long",
    ]
    assert (found.rows_added, found.rows_removed) == (0, 0)
    assert difference(table, 2, 1, 10).schema_changes[0] == "column price double was removed"


def test_versions_of_a_widened_column_compare_in_both_directions(
    tmp_path: Path,
) -> None:
    inner = pa.struct([("a", pa.int32())])
    table = Lake(tmp_path).create("refined.t", pa.schema([("id", pa.int32()), ("s", inner)]))
    appended(table, [{"id": 1, "s": {"a": 1}}])
    wider = pa.struct([("a", pa.int64()), ("b", pa.string())])
    evolve(table, pa.schema([("id", pa.int64()), ("s", wider)]))
    large = {"id": 1 << 40, "s": {"a": 1 << 41, "b": "x"}}
    appended(table, [large])
    there = difference(table, 1, 3, 10)
    back = difference(table, 3, 1, 10)
    assert (there.added.to_pylist(), there.rows_removed) == ([large], 0)
    assert (back.removed.to_pylist(), back.rows_added) == ([large], 0)
    table.restore(1)
    restored = difference(table, 3, table.version, 10)
    assert (restored.removed.to_pylist(), restored.rows_added) == ([large], 0)


@pytest.mark.parametrize("versions", [(1, 3), (3, 1)])
def test_a_version_without_its_files_after_a_vacuum_is_reported(
    table: Table, versions: tuple[int, int]
) -> None:
    numbers(table, 1)
    numbers(table, 2)
    gone = [table.place / file.path for file in table.files(1)]
    optimize(table)
    for path in gone:
        path.unlink()
    with pytest.raises(VersionGone, match=r"version 1 of raw\.orders can no longer be read"):
        difference(table, *versions, 10)
