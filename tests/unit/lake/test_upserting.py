"""Files of a table under merges: only what changes is written anew, and small ones are joined."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commits import AddedFile, Token
from headrace.lake.data_files import DataFile
from headrace.lake.errors import CommitConflict, FilesChanged
from headrace.lake.tables import Table
from headrace.lake.upserting import crowded
from tests.lakes import appended

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


def test_small_files_are_told_by_partition() -> None:
    def file(day: str, size_bytes: int) -> AddedFile:
        return AddedFile(-1, "p", {"day": day}, 1, size_bytes)

    many = [file("a", 10) for _ in range(17)]
    few = [file("b", 10) for _ in range(16)]
    large = [file("a", 100 << 20) for _ in range(20)]
    assert crowded([*few, *many, *large]) == set(range(16, 33))


def test_a_row_of_a_smaller_sequence_changes_nothing(table: Table) -> None:
    table.upsert(rows((1, 5), (2, 5)), ["k"], sequence="n")
    table.upsert(rows((1, 4), (2, 6), (2, 3), (3, 1)), ["k"], sequence="n")
    assert content(table) == {1: 5, 2: 6, 3: 1}


def test_a_row_of_an_equal_sequence_replaces(tmp_path: Path) -> None:
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


def test_files_that_were_planned_on_an_old_version_do_not_land(table: Table) -> None:
    version = table.version
    appended(table, [{"k": 1, "n": 1}])
    with pytest.raises(FilesChanged, match="merge again"):
        table.exchange(version, [], [DataFile("x.parquet", 1, 1)])


def test_a_merge_gives_up_when_others_are_always_quicker(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = table.exchange

    def late(planned_on: int, *given: Any) -> int:
        appended(Table(table.name, table.place), [{"k": 9, "n": 9}])
        return exchange(planned_on, *given)

    monkeypatch.setattr(table, "exchange", late)
    with pytest.raises(CommitConflict, match="one writer"):
        table.upsert(rows((1, 1)), ["k"])
    assert len(list(table.place.glob("*.parquet"))) == len(table.files())
