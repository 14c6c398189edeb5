"""Files rewritten without a change to the rows: joined and widened."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import AddedFile, Token
from headrace.lake.data_files import DataFile, label_of
from headrace.lake.errors import IncompatibleSchema
from headrace.lake.lineage import Lineage
from headrace.lake.reading import read_batches
from headrace.lake.rewriting import evolve, joinable, optimize
from headrace.lake.tables import Table
from tests.builders.lakes import appended, ids_of, numbers, written

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create("raw.orders", SCHEMA)


def file(version: int, size_bytes: int, tag: str | None = "a") -> AddedFile:
    return AddedFile(version, f"{tag}/{version}.parquet", {"tag": tag}, 1, size_bytes)


def sizes(groups: list[list[AddedFile]]) -> list[list[int]]:
    return [[one.version for one in group] for group in groups]


def test_small_files_of_a_partition_are_joined_up_to_the_size_of_one() -> None:
    files = [file(n, 40) for n in range(5)]
    assert sizes(joinable(files, file_bytes_max=100, small=75)) == [[0, 1], [2, 3]]


def test_large_and_single_files_are_left_unchanged() -> None:
    files = [file(1, 80), file(2, 10), file(3, 10, "b"), file(4, 10, None)]
    assert joinable(files, file_bytes_max=100, small=75) == []


def test_files_are_not_joined_across_a_large_one() -> None:
    files = [file(1, 10), file(2, 10), file(3, 80), file(4, 10), file(5, 10)]
    assert sizes(joinable(files, file_bytes_max=100, small=75)) == [[1, 2], [4, 5]]


@pytest.mark.parametrize("idle_at", [None, 0, 2])
def test_rows_stay_in_the_order_in_which_they_came(table: Table, idle_at: int | None) -> None:
    """ARC-1: of several records with one key every reader takes the first for the same one.

    Several files of a commit too, and around the last batch of a writer that may come again.
    """
    for number in range(6):
        files = [*one_file(table, 2 * number), *one_file(table, 2 * number + 1)]
        table.append(files, Token("idle" if number == idle_at else "writer", number))
    before = in_order(table)
    assert optimize(table).files_before
    assert before == in_order(table) == list(range(12))


def one_file(table: Table, number: int) -> list[DataFile]:
    return written(table, [{"id": number, "name": "n"}])


def in_order(table: Table) -> list[int]:
    files = table.files_as_arrived(table.version)
    batches = (b for one in files for b in read_batches(table.place, one, table.schema, ()))
    return [row["id"] for batch in batches for row in batch.to_pylist()]


def test_joining_files_keeps_rows_tokens_and_readers(table: Table) -> None:
    for number in range(6):
        numbers(table, number, batch=number)
    done = optimize(table)
    assert (done.files_before, done.files_after) == (5, 1)
    assert ids_of(table) == list(range(6))
    assert table.has(Token("writer", 5))
    assert table.added(6, table.version) == []
    assert DeltaTable(str(table.place)).to_pyarrow_table().num_rows == 6


def test_a_batch_that_comes_again_finds_its_rows_after_files_were_joined(table: Table) -> None:
    """Quarantined rows from before a crash count once, despite an optimize in between."""
    for number in (0, 1, 2):
        numbers(table, number, batch=number)
    for number in (3, 4, 5):
        appended(table, [{"id": number, "name": "n"}], Token("other", number))
    assert optimize(table).files_before == 4
    table.amend(written(table, [{"id": 6, "name": "n"}]), Token("writer", 2))
    assert ids_of(table) == [0, 1, 3, 4, 5, 6]
    numbers(table, 7, batch=3)
    assert optimize(table).files_before == 2
    assert ids_of(table) == [0, 1, 3, 4, 5, 6, 7]


def test_a_second_optimize_finds_nothing(table: Table) -> None:
    for number in range(3):
        numbers(table, number)
    optimize(table)
    version = table.version
    assert optimize(table).files_before == 0
    assert table.version == version


def test_files_after_a_version_are_not_joined_and_keep_their_commits(table: Table) -> None:
    for number in range(6):
        numbers(table, number)
    optimize(table, up_to_version=4)
    files = table.snapshot_files(table.version)
    assert sorted(one.version for one in files) == [4, 5, 6]
    assert [label_of(one.path) for one in files if label_of(one.path)] == [(1, 4)]


def test_a_file_that_was_changed_meanwhile_is_not_brought_back(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        numbers(table, number)
    other = Table(table.name, table.place)
    change = table.change

    def deleted_first(*arguments: Any) -> int:
        other.delete("id = 2")
        return change(*arguments)

    monkeypatch.setattr(table, "change", deleted_first)
    assert optimize(table).files_before == 0
    assert ids_of(table) == [0, 1, 3]


def test_a_lake_joins_only_files_that_the_batch_layer_has_covered(lake: Lake, table: Table) -> None:
    """ARC-1: a file with covered and uncovered rows would be counted wrong."""
    totals = pa.schema([("name", pa.string()), ("n", pa.int64())])
    batch = lake.create("refined.totals__batch", totals)
    lake.create("refined.totals__speed", totals.append(pa.field("_commit_version", pa.int64())))
    lake.put_view(
        "refined.totals",
        MergedViewEntry(
            "refined.totals",
            ("name",),
            {"n": "sum"},
            "refined.totals__batch",
            "refined.totals__speed",
        ),
    )
    for number in range(6):
        numbers(table, number)
    assert lake.optimize("raw.orders").files_before == 0
    batch.replace([], Token("batch", 0), Lineage(inputs={"raw.orders": (-1, 3)}))
    assert lake.optimize("raw.orders").files_before == 3
    assert sorted(one.version for one in table.snapshot_files(table.version)) == [3, 4, 5, 6]


def test_a_new_column_exists_at_once_and_is_null_in_old_rows(table: Table) -> None:
    numbers(table, 1)
    files = {one.path for one in table.files()}
    version = evolve(table, pa.schema([*SCHEMA, ("price", pa.float64())]))
    assert {one.path for one in table.files()} == files
    appended(table, [{"id": 2, "name": "b", "price": 1.5}])
    assert {(row["id"], row["price"]) for row in table.rows().to_pylist()} == {(1, None), (2, 1.5)}
    assert table.rows(version - 1).column_names == ["id", "name"]
    assert table.added(1, version) == []


def test_a_wider_column_can_be_read_by_all_and_keeps_its_commits(table: Table) -> None:
    numbers(table, 1)
    numbers(table, 2)
    watcher = Table(table.name, table.place)
    evolve(table, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    appended(table, [{"id": 1 << 40, "name": "big"}])
    assert ids_of(table) == [1, 2, 1 << 40]
    assert watcher.schema.field("id").type == pa.int64()
    assert sorted(one.version for one in table.snapshot_files(table.version)) == [1, 2, 4]
    assert table.added(2, 3) == []
    delta = DeltaTable(str(table.place))
    assert sorted(delta.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 1 << 40]
    assert ids_of(table, 2) == [1, 2]


def test_columns_inside_lists_and_maps_can_be_added_and_merged_then(lake: Lake) -> None:
    def nested(inner: list[tuple[str, pa.DataType]]) -> pa.Schema:
        of = pa.struct(inner)
        return pa.schema([("id", pa.int64()), ("l", pa.list_(of)), ("m", pa.map_(pa.string(), of))])

    table = lake.create("trusted.nested", nested([("x", pa.int32())]))
    appended(table, [{"id": n, "l": [{"x": n}], "m": [("k", {"x": n})]} for n in (1, 2)])
    evolve(table, nested([("x", pa.int32()), ("y", pa.string())]))
    new = {"id": 1, "l": [{"x": 5, "y": "a"}], "m": [("k", {"x": 5, "y": "b"})]}
    table.upsert(pa.Table.from_pylist([new], schema=table.schema), ["id"])
    old = {"id": 2, "l": [{"x": 2, "y": None}], "m": [("k", {"x": 2, "y": None})]}
    assert sorted(table.rows().to_pylist(), key=lambda row: row["id"]) == [new, old]


def test_the_same_schema_changes_nothing(table: Table) -> None:
    assert evolve(table, SCHEMA) == 0


def test_a_narrower_column_is_refused_and_nothing_changes(table: Table) -> None:
    """ARC-4"""
    with pytest.raises(IncompatibleSchema, match="column id is int and cannot become short"):
        evolve(table, pa.schema([("id", pa.int16())]))
    assert table.version == 0


def test_local_times_can_be_added(table: Table) -> None:
    numbers(table, 1)
    evolve(table, pa.schema([*SCHEMA, ("at", pa.timestamp("us"))]))
    numbers(table, 2)
    assert DeltaTable(str(table.place)).to_pyarrow_table()["at"].null_count == 2
