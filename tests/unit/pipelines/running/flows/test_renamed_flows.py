"""A renamed flow is distinguished from a new one."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.tables import Table
from headrace.pipelines.model import Location, Source
from headrace.pipelines.running.errors import StateDisagrees
from headrace.pipelines.running.flows.renamed_flows import (
    changed_input,
    check_not_renamed,
    topics_and_tables,
)
from headrace.pipelines.running.state.folders import FlowState, PipelineState
from headrace.spark.tables.plans import Position
from tests.builders.checkpoints import flow_at

HERE = Location("pipeline.toml", 1)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Lake(tmp_path / "lake").create("raw.all", pa.schema([("id", pa.int64())]))


@pytest.fixture
def state(tmp_path: Path) -> PipelineState:
    return PipelineState.of(tmp_path / "lake", "orders")


def has_read(state: FlowState, topic: str) -> FlowState:
    """Let a flow have planned one batch of a topic."""
    (state.checkpoint / "offsets").mkdir(parents=True)
    content = "\n".join(["v1", "{}", json.dumps({topic: {"0": 5}})])
    (state.checkpoint / "offsets" / "0").write_text(content)
    return state


def test_a_new_flow_cannot_append_inputs_of_a_former_one_again(
    table: Table, state: PipelineState
) -> None:
    old, new = has_read(state.flow("f", 1), "orders"), state.flow("g", 1)
    table.append([], Token(old.writer(), 0))
    with pytest.raises(StateDisagrees, match=r"call it f again, or rename the folder .* to g"):
        check_not_renamed("g", new, table, [old], {"orders"})


def test_a_new_flow_may_append_inputs_that_the_former_one_did_not_read(
    table: Table, state: PipelineState
) -> None:
    old, new = has_read(state.flow("f", 1), "orders"), state.flow("g", 1)
    table.append([], Token(old.writer(), 0))
    check_not_renamed("g", new, table, [old], {"payments", "raw.orders"})


def test_a_new_flow_may_append_inputs_that_the_former_one_wrote_elsewhere(
    table: Table, state: PipelineState
) -> None:
    old, new = has_read(state.flow("f", 1), "orders"), state.flow("g", 1)
    check_not_renamed("g", new, table, [old], {"orders"})


def test_sources_are_known_by_their_topics_and_tables_by_their_names() -> None:
    sources = [
        Source("a", HERE),
        Source("b", HERE, topic="x,y"),
        Source("c", HERE, topic_pattern="z.*"),
    ]
    reads = ["sources.a", "sources.b", "sources.c", "raw.orders"]
    assert topics_and_tables(reads, sources) == {"a", "x", "y", "raw.orders"}


def test_a_flow_whose_input_was_renamed_is_rejected_with_the_command_to_run(
    table: Table, tmp_path: Path
) -> None:
    state = flow_at(tmp_path / "staging.x" / "g1", Position("raw.all", table.table_id, 3))
    problem = changed_input("staging.x", state, {"raw.every", "sources.orders"})
    assert problem is not None
    assert "is for raw.all, and the flow now reads raw.every" in problem
    assert "`headrace pipelines replay FOLDER`" in problem
    assert changed_input("staging.x", state, {"raw.all", "raw.every"}) is None


def test_a_flow_that_never_ran_may_read_anything(state: PipelineState) -> None:
    assert changed_input("f", state.flow("f", 1), {"raw.all"}) is None
