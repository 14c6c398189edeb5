"""Files of a table under merges: only changed files are rewritten, and small ones are joined."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import AddedFile, Token
from headrace.lake.data_files import DataFile
from headrace.lake.errors import CommitConflict, FilesChanged, WriteFailed
from headrace.lake.rewriting import optimize
from headrace.lake.tables import Table
from headrace.lake.upsert_files import crowded
from tests.builders.lakes import appended

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Lake(tmp_path).create("refined.t", SCHEMA)


def rows(*values: tuple[int, int]) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "n": n} for k, n in values], schema=SCHEMA)


def content(table: Table) -> dict[int, int]:
    return {row["k"]: row["n"] for row in table.rows().to_pylist()}


def test_files_without_a_key_of_the_batch_stay(table: Table) -> None:
    for first in (0, 10, 20):
        appended(table, [{"k": first + n, "n": 0} for n in range(3)])
    before = {file.path for file in table.files()}
    table.upsert(rows((11, 5)), ["k"])
    assert len(before & {file.path for file in table.files()}) == 2
    assert content(table)[11] == 5
    assert len(content(table)) == 9


def test_a_table_does_not_gather_a_file_for_each_batch(table: Table) -> None:
    for number in range(60):
        table.upsert(rows((number, number)), ["k"], Token("w", number))
    assert len(table.files()) <= 18
    assert content(table) == {number: number for number in range(60)}


def test_small_files_are_counted_by_partition() -> None:
    def file(day: str, size_bytes: int) -> AddedFile:
        return AddedFile(-1, "p", {"day": day}, 1, size_bytes)

    many = [file("a", 10) for _ in range(17)]
    few = [file("b", 10) for _ in range(16)]
    large = [file("a", 100 << 20) for _ in range(20)]
    assert crowded([*few, *many, *large]) == set(range(16, 33))


def test_small_files_of_many_partitions_are_joined_within_each(tmp_path: Path) -> None:
    """More partitions than a writer has files open for."""
    schema = SCHEMA.append(pa.field("day", pa.int64()))
    table = Lake(tmp_path).create("refined.p", schema, partition_by=["day"])
    for n in range(3):
        appended(table, [{"k": 2 * n + m, "n": 0, "day": d} for d in range(40) for m in (0, 1)])
    replaced = [{"k": 2 * n, "n": 1, "day": day} for day in range(40) for n in range(3)]
    table.upsert(pa.Table.from_pylist(replaced, schema=schema), ["day", "k"])
    assert len(table.files()) <= 80
    assert sorted(row["n"] for row in table.rows().to_pylist()) == [0] * 120 + [1] * 120


def test_a_row_of_a_smaller_sequence_changes_nothing(table: Table) -> None:
    table.upsert(rows((1, 5), (2, 5)), ["k"], sequence="n")
    table.upsert(rows((1, 4), (2, 6), (2, 3), (3, 1)), ["k"], sequence="n")
    assert content(table) == {1: 5, 2: 6, 3: 1}


def test_a_row_of_an_equal_sequence_replaces_the_stored_one(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("seq", pa.int64()))
    table = Lake(tmp_path).create("refined.s", schema)
    for n in (1, 2):
        given = pa.table({"k": [1], "n": [n], "seq": [7]}, schema=schema)
        table.upsert(given, ["k"], sequence="seq")
    assert content(table) == {1: 2}


def test_a_sum_that_does_not_fit_is_refused_with_its_column(table: Table) -> None:
    table.upsert(rows((1, 2**62)), ["k"], merge={"n": "sum"})
    with pytest.raises(Exception, match="a sum in column n does not fit"):
        table.upsert(rows((1, 2**62)), ["k"], merge={"n": "sum"})


def test_files_planned_on_an_old_version_are_not_committed(table: Table) -> None:
    version = table.version
    appended(table, [{"k": 1, "n": 1}])
    with pytest.raises(FilesChanged, match="merge again"):
        table.exchange(version, [], [DataFile("x.parquet", 1, 1)])


def test_a_merge_fails_after_repeated_conflicts(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = table.exchange

    def late(planned_on: int, *given: Any) -> int:
        appended(Table(table.name, table.place), [{"k": 9, "n": 9}])
        return exchange(planned_on, *given)

    monkeypatch.setattr(table, "exchange", late)
    with pytest.raises(CommitConflict, match=r"version 20 \(append\).* one writer"):
        table.upsert(rows((1, 1)), ["k"])
    assert len(list(table.place.glob("*.parquet"))) == len(table.files())


@pytest.mark.parametrize(("key", "tries"), [(21, 1), (11, 2)])
def test_a_merge_conflicts_with_joined_files_only_if_it_rewrites_them(
    key: int, tries: int, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in (0, 10, 20):
        appended(table, [{"k": first + n, "n": 0} for n in range(3)])
    exchange = table.exchange
    planned: list[int] = []

    def late(planned_on: int, *given: Any) -> int:
        if not planned:
            optimize(Table(table.name, table.place), up_to_version=2)
        planned.append(planned_on)
        return exchange(planned_on, *given)

    monkeypatch.setattr(table, "exchange", late)
    table.upsert(rows((key, 5)), ["k"])
    assert len(planned) == tries
    assert content(table) == {k: 5 * (k == key) for k in (0, 1, 2, 10, 11, 12, 20, 21, 22)}


def test_a_merge_whose_files_were_taken_away_before_its_commit_is_refused(table: Table) -> None:
    """As by a vacuum that retains less than a merge takes; the table would lose the rows."""
    with table.writer() as writer:
        writer.write(rows((1, 1)))
        files = writer.close()
    (table.place / files[0].path).unlink()
    with pytest.raises(WriteFailed, match=r"1 of 1 files .* --retain"):
        table.exchange(table.version, [], files)
    assert table.version == 0
