"""The lock of a running pipeline, and the agreement of its checkpoints and tables."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from headrace.lake.errors import WriteFailed
from headrace.pipelines.running.errors import PipelineRuns, StateDisagrees
from headrace.pipelines.running.state.folders import FlowState, PipelineState
from headrace.pipelines.status import FlowStatus, PipelineStatus
from tests.builders.lakes import files_up_to


def with_batches(directory: Path, planned: int, committed: int) -> FlowState:
    state = FlowState(directory)
    for name, newest in (("offsets", planned), ("commits", committed)):
        (state.checkpoint / name).mkdir(parents=True)
        for batch in range(newest + 1):
            (state.checkpoint / name / str(batch)).write_text("v1\n{}")
    return state


def hold(lake: Path, ready: "multiprocessing.synchronize.Event") -> None:
    with PipelineState.of(lake, "orders").held():
        ready.set()
        multiprocessing.Event().wait(60)


def test_a_second_process_is_refused_and_a_dead_one_holds_no_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold, args=(tmp_path, ready))
    process.start()
    state = PipelineState.of(tmp_path, "orders")
    try:
        assert ready.wait(60)
        assert state.is_held()
        with pytest.raises(PipelineRuns, match=f"process {process.pid}"), state.held():
            pass
    finally:
        process.kill()
        process.join()
    with state.held():
        assert state.is_held()
    assert not state.is_held()


@pytest.mark.parametrize(
    ("purpose", "advice"),
    [
        ("run", "stop it with `headrace pipelines stop FOLDER --lake LAKE`, or wait"),
        ("replay", "wait until that replay has ended, or end process PID"),
        ("redrive", "wait until that redrive has ended, or end process PID"),
    ],
)
def test_only_a_run_is_stopped_by_the_command_for_it(
    tmp_path: Path, purpose: str, advice: str
) -> None:
    """The command would end the live pipeline, and leave what is in the way."""
    state = PipelineState.of(tmp_path, "orders")
    expected = advice.replace("LAKE", str(tmp_path)).replace("PID", str(os.getpid()))
    with state.held(purpose), pytest.raises(PipelineRuns) as refused, state.held(purpose):
        pass
    assert expected in str(refused.value)


def test_a_flow_keeps_its_name_in_the_tables(tmp_path: Path) -> None:
    state = PipelineState.of(tmp_path, "orders").flow("staging.orders", 1)
    assert state.writer() == state.writer()
    assert state.writer() != PipelineState.of(tmp_path, "orders").flow("b", 1).writer()


def test_flows_that_are_no_longer_declared_are_known_by_their_folders(tmp_path: Path) -> None:
    state = PipelineState.of(tmp_path, "orders")
    for name, generation in (("a", 1), ("b c", 1), ("d", 1), ("d", 2)):
        state.flow(name, generation).writer()
    assert state.former_flows(1, ["b c", "d"]) == [state.flow("a", 1)]


def test_a_table_may_be_one_batch_ahead_of_the_checkpoint(tmp_path: Path) -> None:
    state = with_batches(tmp_path, planned=4, committed=3)
    state.check("f", "staging.orders", 3)
    state.check("f", "staging.orders", 4)


def test_a_table_that_lost_batches_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(StateDisagrees, match="only up to 1"):
        with_batches(tmp_path, planned=4, committed=4).check("f", "staging.orders", 1)


def test_a_checkpoint_that_lost_batches_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(StateDisagrees, match="up to 7"):
        with_batches(tmp_path, planned=4, committed=4).check("f", "staging.orders", 7)


def test_a_checkpoint_that_was_removed_is_noticed_even_after_one_batch(tmp_path: Path) -> None:
    with pytest.raises(StateDisagrees):
        FlowState(tmp_path).check("f", "staging.orders", 0)


def test_a_stop_is_requested_once(tmp_path: Path) -> None:
    state = PipelineState.of(tmp_path, "orders")
    state.directory.mkdir(parents=True)
    state.ask_to_stop()
    assert state.is_asked_to_stop()
    state.forget_stop()
    assert not state.is_asked_to_stop()


def test_starts_are_read_from_the_files_of_each_source(tmp_path: Path) -> None:
    state = FlowState(tmp_path)
    for source, offset in (("a", 4), ("b", 7)):
        (state.starts / source).mkdir(parents=True)
        content = json.dumps({"offsets": {"orders": {"0": offset}, source: {"1": offset}}})
        (state.starts / source / "starts.json").write_text(content)
    assert state.started_at() == {"orders": {"0": 4}, "a": {"1": 4}, "b": {"1": 7}}


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = PipelineState(tmp_path)
    flow = FlowStatus(flow="raw.x", rows_in=3, broken={"positive": 1})
    status = PipelineStatus(pipeline="shop", state="running", flows=(flow,))
    state.write_status(status)
    assert state.read_status() == status


@pytest.mark.parametrize("content", [None, '{"pipeline": "sh', "[]"])
def test_an_incomplete_status_is_read_as_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "status.json").write_text(content)
    assert PipelineState(tmp_path).read_status() is None


def test_a_full_disk_does_not_keep_a_pipeline_from_being_held(tmp_path: Path) -> None:
    """Its flows report the remedy."""
    state = PipelineState.of(tmp_path, "orders")
    with files_up_to(0), state.held():
        assert state.is_held()


def test_a_failed_write_to_disk_is_reported_with_advice(tmp_path: Path) -> None:
    state = PipelineState.of(tmp_path, "orders")
    with files_up_to(10), pytest.raises(WriteFailed, match=r"status\.json .* make room"):
        state.write_status(PipelineStatus(pipeline="orders", state="running"))
