"""Tables: commits that land once, whole and in order; rows of every version."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.errors import (
    IncompatibleSchema,
    LakeError,
    TableRewritten,
    UnsupportedTable,
    VersionGone,
    WriteFailed,
)
from headrace.lake.lineage import Lineage
from headrace.lake.reading import select
from headrace.lake.tables import Table
from tests.builders.lakes import appended, files_up_to, ids_of, numbers, written

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create("raw.orders", SCHEMA)


def test_rows_are_visible_after_their_commit_and_not_before(table: Table) -> None:
    files = written(table, [{"id": 1, "name": "a"}])
    assert ids_of(table) == []
    version = table.append(files)
    assert (version, ids_of(table)) == (1, [1])


def test_a_batch_is_taken_once(table: Table) -> None:
    """A batch that Spark replays after a crash is skipped."""
    first = numbers(table, 1, batch=7)
    assert table.has(Token("writer", 7))
    assert not table.has(Token("writer", 8))
    assert not table.has(Token("another", 7))
    assert numbers(table, 1, batch=7) == first
    assert numbers(table, 0, batch=6) == first
    assert ids_of(table) == [1]


def test_a_batch_without_rows_leaves_its_token_and_lineage(table: Table) -> None:
    lineage = Lineage(pipeline="shop", offsets={"orders": {"0": (5, 5)}})
    version = table.append([], Token("writer", 0), lineage)
    assert version == 1
    assert table.has(Token("writer", 0))
    assert table.history.lineage(version) == lineage


def test_tokens_outlive_checkpoints_and_a_cleaned_log(lake: Lake) -> None:
    properties = {"delta.logRetentionDuration": "interval 0 seconds"}
    table = lake.create("raw.busy", SCHEMA, properties=properties)
    numbers(table, 1, batch=0)
    watcher = lake.table("raw.busy")
    for batch in range(250):
        table.append([], Token("idle", batch))
    assert len(list((table.place / "_delta_log").iterdir())) < 250
    for seen in (watcher, lake.table("raw.busy")):
        assert seen.version == 251
        assert seen.has(Token("writer", 0))
        assert seen.has(Token("idle", 249))
        assert not seen.has(Token("idle", 250))
    with pytest.raises(VersionGone, match="has to restart"):
        table.added(0, 1)
    assert numbers(watcher, 2) == 252


def test_writers_of_two_processes_do_not_undo_each_other(table: Table) -> None:
    others = [Table(table.name, table.place) for _ in range(4)]

    def write(number: int) -> None:
        for batch in range(10):
            row = {"id": number * 10 + batch, "name": "x"}
            appended(others[number], [row], Token(f"writer-{number}", batch))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert ids_of(table) == list(range(40))
    assert table.version == 40


def test_one_of_two_writers_with_the_same_token_commits(table: Table) -> None:
    others = [Table(table.name, table.place) for _ in range(2)]

    def write(number: int) -> None:
        for batch in range(20):
            numbers(others[number], batch, batch=batch)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    assert ids_of(table) == list(range(20))


def test_a_replacement_removes_earlier_rows_and_late_appends(table: Table) -> None:
    numbers(table, 1, 2)
    late = Table(table.name, table.place)
    files = written(table, [{"id": 9, "name": "z"}])
    numbers(late, 3)
    version = table.replace(files, Token("view", 0))
    assert ids_of(table) == [9]
    assert ids_of(table, version - 1) == [1, 2, 3]
    assert table.replace([], Token("view", 0)) == version
    table.replace([], Token("view", 1))
    assert ids_of(table) == []


def test_every_version_can_be_read_again(table: Table) -> None:
    numbers(table, 1)
    numbers(table, 2)
    assert [ids_of(table, version) for version in range(3)] == [[], [1], [1, 2]]
    with pytest.raises(VersionGone, match="its newest is 2"):
        table.rows(3)


def test_rows_are_chosen_by_sql_and_columns(table: Table) -> None:
    numbers(table, 1, 2, 3)
    assert table.rows(where="id > 1", columns=["name"], order="id DESC").to_pydict() == {
        "name": ["n3", "n2"]
    }
    assert table.rows(limit=2).num_rows == 2
    with pytest.raises(LakeError, match="no column colour"):
        table.rows(columns=["colour"])
    with pytest.raises(LakeError, match="query failed"):
        table.rows(where="nothing = 1")


@pytest.mark.parametrize("order", ["offset", "offset ASC", '"offset"'])
def test_rows_are_sorted_by_a_column_that_is_a_keyword(order: str) -> None:
    rows = ds.dataset(pa.table({"offset": [2, 1]}))
    assert select(rows, order=order)["offset"].to_pylist() == [1, 2]


@pytest.mark.parametrize("where", ["offset = 1", "OFFSET > 0 AND other = 'offset'"])
def test_an_unquoted_keyword_is_rejected_with_advice(where: str) -> None:
    rows = ds.dataset(pa.table({"offset": [2, 1], "other": ["a", "b"]}))
    with pytest.raises(LakeError, match=r'names that are SQL keywords: "offset"$'):
        select(rows, where=where)


def test_other_mistakes_in_sql_are_rejected_without_advice_on_keywords() -> None:
    rows = ds.dataset(pa.table({"offset": [2, 1]}))
    with pytest.raises(LakeError, match=r"query failed: (?s:.(?!keywords))*$"):
        select(rows, where='"offset" = nothing')


def test_conditions_cannot_reach_files_of_the_machine(table: Table, tmp_path: Path) -> None:
    numbers(table, 1)
    secret = tmp_path / "secret.csv"
    secret.write_text("id\n1\n")
    with pytest.raises(LakeError, match="query failed"):
        table.rows(where=f"id IN (SELECT id FROM read_csv('{secret}'))")


def test_a_reader_gets_added_files_with_their_commits(table: Table) -> None:
    numbers(table, 1)
    numbers(table, 2, 3)
    table.append([], Token("writer", 0))
    numbers(table, 4)
    added = table.added(1, 4)
    assert [(file.version, file.rows) for file in added] == [(2, 2), (4, 1)]
    assert table.added(4, 4) == []


def test_a_reader_of_added_files_fails_at_changed_rows(table: Table) -> None:
    numbers(table, 1, 2)
    table.delete("id = 1")
    with pytest.raises(TableRewritten, match=r"version 2 of raw\.orders \(delete\)"):
        table.added(1, 2)
    assert ids_of(table) == [2]


def test_deleting_with_a_token_happens_once(table: Table) -> None:
    numbers(table, 1)
    table.delete("id = 1", Token("redrive", 0))
    numbers(table, 1)
    table.delete("id = 1", Token("redrive", 0))
    assert ids_of(table) == [1]


def test_restoring_brings_back_rows_and_lineage_as_a_new_version(table: Table) -> None:
    first = Lineage(inputs={"raw.in": (-1, 5)})
    appended(table, [{"id": 1, "name": "a"}], Token("writer", 0), first)
    second = Lineage(inputs={"raw.in": (5, 9)})
    table.replace(written(table, [{"id": 2, "name": "b"}]), Token("writer", 1), second)
    version = table.restore(1)
    assert (version, ids_of(table), table.history.lineage()) == (3, [1], first)
    assert table.has(Token("writer", 1))
    with pytest.raises(VersionGone, match="no version 9"):
        table.restore(9)


def test_a_full_disk_at_the_commit_changes_nothing(table: Table) -> None:
    numbers(table, 1, batch=0)
    files = written(table, [{"id": 2, "name": "b"}])
    with files_up_to(10), pytest.raises(WriteFailed, match="Nothing was committed"):
        table.append(files, Token("writer", 1))
    assert table.version == 1
    assert not table.has(Token("writer", 1))
    assert not list((table.place / "_delta_log").glob(".*"))
    assert table.append(files, Token("writer", 1)) == 2


def test_a_full_disk_in_a_merge_changes_nothing(table: Table) -> None:
    numbers(table, 1)
    rows = pa.table({"id": [1], "name": ["b"]}, schema=SCHEMA)
    with files_up_to(10), pytest.raises(WriteFailed, match="Nothing was committed"):
        table.upsert(rows, ["id"], Token("writer", 1))
    assert not table.has(Token("writer", 1))
    assert table.rows()["name"].to_pylist() == ["n1"]
    table.upsert(rows, ["id"], Token("writer", 1))
    assert table.rows()["name"].to_pylist() == ["b"]


def test_vacuum_removes_old_files_of_failed_writes_only(table: Table) -> None:
    import os

    numbers(table, 1)
    old, young = table.place / "part-old.zstd.parquet", table.place / "part-young.zstd.parquet"
    for path in (old, young):
        path.write_bytes(b"left behind")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    assert [Path(path).name for path in table.vacuum(dry_run=True)] == [old.name]
    table.vacuum()
    assert (old.exists(), young.exists(), ids_of(table)) == (False, True, [1])
    with pytest.raises(LakeError, match="an hour"):
        table.vacuum(0)


def test_a_version_whose_files_are_gone_is_named(table: Table) -> None:
    numbers(table, 1)
    (file,) = table.files()
    table.replace([])
    (table.place / file.path).unlink()
    with pytest.raises(VersionGone, match=r"version 1 of raw\.orders .* 1 of its 1 files"):
        table.rows(1)
    with pytest.raises(LakeError, match="restore of raw"):
        table.restore(1)


def test_other_readers_of_delta_see_the_same_table(lake: Lake) -> None:
    """Delta by its wheel, and DuckDB over the files that the log names."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("tag", pa.string())])
    table = lake.create("raw.events", schema, partition_by=["tag"])
    days = pa.array([20_000, None], pa.int32()).cast(pa.date32()).to_pylist()
    rows = [{"id": n, "day": days[n % 2], "tag": ("a b/c=é%", None)[n % 2]} for n in range(10)]
    appended(table, rows)
    delta = DeltaTable(str(table.place))
    assert sorted(delta.to_pyarrow_table().to_pylist(), key=lambda row: row["id"]) == rows
    assert delta.to_pyarrow_table(filters=[("id", ">", 7)]).num_rows == 2
    paths = delta.file_uris()
    found = duckdb.execute(f"SELECT count(*), min(id), max(id) FROM read_parquet({paths!r})")
    assert found.fetchall() == [(10, 0, 9)]


def test_a_table_that_others_wrote_to_is_followed(table: Table) -> None:
    numbers(table, 1)
    write_deltalake(
        str(table.place), pa.table({"id": [2], "name": ["b"]}, schema=SCHEMA), mode="append"
    )
    assert ids_of(table) == [1, 2]
    assert [file.version for file in table.added(1, 2)] == [2]


def test_features_that_are_not_written_here_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "other"
    write_deltalake(
        str(place),
        pa.table({"id": [1]}),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    with pytest.raises(UnsupportedTable, match="writer version 4"):
        Table("raw.other", place)


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(table: Table) -> None:
    with pytest.raises(IncompatibleSchema, match="no column colour"):
        table.writer().write(pa.table({"colour": ["red"]}))
    assert list(table.place.glob("*.parquet")) == []


def test_only_changed_properties_are_committed(table: Table) -> None:
    kept = table.properties
    version = table.set_properties(
        {"delta.targetFileSize": "9", "delta.isolationLevel": "Serializable"}
    )
    assert table.set_properties({"delta.targetFileSize": "9"}) == version
    assert table.set_properties({}, {"delta.targetFileSize", "delta.isolationLevel"}) == version + 1
    assert table.properties == kept
    assert table.set_properties({}, {"delta.targetFileSize"}) == version + 1
