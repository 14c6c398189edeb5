"""Which flows are waited for before files are joined: all that may go on, and no others."""

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.rewriting import optimize
from headrace.lake.tables import Table
from headrace.pipelines.running.state.folders import FlowState, PipelineState
from headrace.pipelines.running.tables.followers import Follower, followers, has_unread, slowest
from headrace.pipelines.status import FlowStatus, PipelineStatus
from headrace.spark.tables.plans import Position
from tests.builders.checkpoints import flow_at
from tests.builders.lakes import numbers

NAME = "raw.orders"
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A raw table that is kept, and of another one two generations, the second of which counts."""
    lake = Lake(tmp_path)
    lake.create(NAME, SCHEMA, pipeline="shop")
    for generation in (1, 2):
        lake.create("trusted.orders", SCHEMA, pipeline="shop", generation=generation)
    lake.switch({"trusted.orders": 2})
    return lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table(NAME)


def flow(table: Table, folder: str, version: int) -> FlowState:
    """`shop/trusted.orders/g1`, which has read the table up to a version."""
    pipeline, name, generation = folder.split("/")
    lake = table.place.parents[1]
    state = PipelineState.of(lake, pipeline).flow(name, int(generation[1:]))
    return flow_at(state.directory, Position(NAME, table.table_id, version))


def last_run(lake: Lake, pipeline: str, *flows: str) -> None:
    said = tuple(FlowStatus(flow=name, target=name) for name in flows)
    status = PipelineStatus(pipeline=pipeline, state="done", flows=said)
    PipelineState.of(lake.root, pipeline).write_status(status)


def read_by_all(lake: Lake) -> int | None:
    found = slowest(lake.table(NAME), followers(lake))
    return None if found is None else found.version


def test_flows_of_all_pipelines_of_the_lake_are_waited_for(lake: Lake, table: Table) -> None:
    assert read_by_all(lake) is None
    flow(table, "shop/trusted.orders/g2", 9)
    flow(table, "reports/refined.sales/g1", 4)
    found = slowest(table, followers(lake))
    assert found is not None
    assert (found.version, str(found.follower)) == (4, "reports/flows/refined.sales/g1")


def test_a_generation_keeps_the_log_while_a_switch_back_is_possible(
    lake: Lake, table: Table
) -> None:
    flow(table, "shop/trusted.orders/g3", 1)
    flow(table, "shop/trusted.orders/g2", 9)
    state = PipelineState.of(lake.root, "shop")
    state.record_switch({"trusted.orders": 3})
    assert read_by_all(lake) == 1
    state.record_drop(3, ["trusted.orders"])
    assert read_by_all(lake) == 9


def test_readers_of_a_running_replay_are_waited_for(lake: Lake, table: Table) -> None:
    lake.create("trusted.orders", SCHEMA, pipeline="shop", generation=3)
    last_run(lake, "shop", "trusted.orders")
    flow(table, "shop/trusted.orders/g2", 9)
    flow(table, "shop/trusted.new_orders/g3", 2)
    with PipelineState.of(lake.root, "shop").held("replay"):
        assert read_by_all(lake) == 2
    assert read_by_all(lake) == 9


def test_a_flow_that_the_last_run_did_not_have_is_not_waited_for(lake: Lake, table: Table) -> None:
    flow(table, "shop/trusted.orders/g1", 9)
    flow(table, "shop/trusted.old_orders/g1", 3)
    flow(table, "shop/refined.counts__speed/g1", 7)
    assert read_by_all(lake) == 3, "unknown before its first run"
    last_run(lake, "shop", "trusted.orders", "refined.counts")
    assert read_by_all(lake) == 7, "the flow of a merged view has the name of its table"
    last_run(lake, "shop", "trusted.orders")
    assert read_by_all(lake) == 9


def test_versions_of_another_generation_of_the_table_do_not_count(lake: Lake, table: Table) -> None:
    flow(table, "shop/trusted.orders/g2", 9)
    state = PipelineState.of(lake.root, "shop").flow("refined.sales", 2)
    flow_at(state.directory, Position(NAME, "that of the generation before", 1))
    assert read_by_all(lake) == 9


def test_a_flow_has_read_versions_before_its_start(
    lake: Lake,
) -> None:
    sent = PipelineState.of(lake.root, "shop").flow("sent", 2)
    sent.start_after({"trusted.orders": 5})
    (follower,) = followers(lake)
    assert follower.has_read(lake.table("trusted.orders", 2)) == 5
    assert follower.has_read(lake.table("trusted.orders", 1)) is None
    table = lake.table("trusted.orders", 2)
    flow_at(sent.directory, Position(table.name, table.table_id, 8))
    assert Follower.of(sent).has_read(table) == 8


def test_own_flows_are_waited_for_in_any_case(lake: Lake, table: Table) -> None:
    last_run(lake, "shop")
    own = flow(table, "shop/trusted.orders/g7", 6)
    assert followers(lake) == []
    assert followers(lake, [own]) == [Follower.of(own)]


def test_a_damaged_checkpoint_is_logged_and_blocks_nothing(
    lake: Lake, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    flow(table, "shop/trusted.orders/g2", 9)
    torn = flow(table, "shop/refined.sales/g1", 2)
    (torn.checkpoint / "offsets" / "0").write_text("v1\n{}\n{torn")
    assert read_by_all(lake) == 9
    (record,) = caplog.records
    assert record.message == "damaged checkpoint ignored"
    assert vars(record)["folder"].endswith("refined.sales/g1")


def test_commits_without_files_are_nothing_to_wait_for(table: Table) -> None:
    numbers(table, 1)
    numbers(table, 2)
    assert has_unread(table, 1)
    optimize(table)
    assert not has_unread(table, 2)
    assert has_unread(table, -1)
    table.delete("id = 1")
    assert has_unread(table, 2), "the flow reports that it cannot continue"
