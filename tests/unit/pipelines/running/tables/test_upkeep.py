"""Tidying beside flows that follow the tables: what one has yet to read stays."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.reader_positions import reader_position
from headrace.lake.reading import read_batches
from headrace.lake.tables import Table
from headrace.pipelines.running.state.folders import FlowState
from headrace.pipelines.running.tables.followers import Follower
from headrace.pipelines.running.tables.upkeep import TableTidying
from headrace.spark.tables.plans import Position, advanced, planned
from tests.builders.checkpoints import flow_at
from tests.builders.lakes import numbers

NAME = "raw.orders"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Lake(tmp_path / "lake").create(
        NAME, pa.schema([("id", pa.int64()), ("name", pa.string())])
    )
    for number in range(20):
        numbers(table, number, batch=number)
    return table


def vacuumed(table: Table) -> None:
    """Remove the files that the newest version lacks, as vacuum does a day later."""
    needed = {file.path for file in table.files()}
    for path in table.place.glob("*.parquet"):
        if path.name not in needed:
            path.unlink()


def read_on(table: Table, start: Position) -> list[int]:
    files = planned(table, start, advanced(table, start, table.version, None))
    batches = (b for one in files for b in read_batches(table.place, one, table.schema, ()))
    return [row["id"] for batch in batches for row in batch.to_pylist()]


def tidied(table: Table, *flows: FlowState) -> int:
    """Return the number of files of the table after a check."""
    tidying = TableTidying(Lake(table.place.parent.parent), every=5, small_files_max=5)
    tidying.check({NAME: 1}, list(map(Follower.of, flows)))
    vacuumed(table)
    return len(table.files())


def test_files_are_joined_as_far_as_all_flows_have_read(table: Table, tmp_path: Path) -> None:
    """ARC-5: a flow that was stopped for days continues at its position, and so do the others."""
    still, quick = (Position(NAME, table.table_id, version) for version in (10, 18))
    files = tidied(table, flow_at(tmp_path / "f", still), flow_at(tmp_path / "g", quick))
    assert files == 11
    assert read_on(table, still) == list(range(10, 20))
    assert read_on(table, quick) == [18, 19]


def test_no_file_is_removed_during_the_first_read_of_a_flow(table: Table, tmp_path: Path) -> None:
    start = Position(NAME, table.table_id, -1)
    end = advanced(table, start, table.version, None)
    assert tidied(table, flow_at(tmp_path / "f", end, is_committed=False)) == 20
    part = advanced(table, start, table.version, 7)
    assert tidied(table, flow_at(tmp_path / "g", part)) == 20


def test_without_a_reader_all_files_are_joined(table: Table, tmp_path: Path) -> None:
    unread = FlowState(tmp_path / "f" / "g1")
    assert tidied(table, unread) == 2, "the newest batch of the writer is left alone"


def test_the_log_is_kept_for_the_slowest_flow(table: Table, tmp_path: Path) -> None:
    still = Position(NAME, table.table_id, 10)
    tidied(table, flow_at(tmp_path / "f", still))
    assert reader_position(table.place) == 10
    tidied(table)
    assert reader_position(table.place) is None


def test_a_reader_that_keeps_the_log_too_long_is_logged_once(
    table: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (table.place / "_delta_log").iterdir():
        os.utime(path, (1e9, 1e9))
    flow = Follower.of(flow_at(tmp_path / "shop/flows/f/g1", Position(NAME, table.table_id, 10)))
    tidying = TableTidying(Lake(table.place.parent.parent))
    for _ in range(2):
        tidying.check({NAME: 1}, [flow])
    assert caplog.messages == ["files of a table kept for a flow that is behind"]
    problem = vars(caplog.records[0])["advice"]
    assert problem.startswith("shop/flows/f/g1 has not read the files from version 11 on")


def test_a_table_that_is_lost_does_not_keep_the_next_from_being_tidied(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(table.place.parent.parent)
    lost = lake.create("raw.lost", table.schema)
    shutil.rmtree(lost.place)
    tidying = TableTidying(lake, every=5, small_files_max=5)
    for _ in range(2):
        tidying.check({"raw.lost": 1, NAME: 1}, [])
    assert len(table.files()) == 2
    assert caplog.messages == ["table not tidied"]
    assert vars(caplog.records[0])["table"] == "raw.lost"
