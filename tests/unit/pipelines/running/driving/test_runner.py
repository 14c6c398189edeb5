"""The course of a continuous run, and its end: each flow stops between batches if possible."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from py4j.protocol import Py4JNetworkError

from headrace.pipelines.running.driving.restarts import Failure
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.pipelines.running.driving.running_flow import RunningFlow
from headrace.pipelines.running.driving.running_view import RunningView
from tests.builders.pipeline_runs import Clock, standing_run


@dataclass(slots=True)
class Query:
    """A query that is busy with a batch until a time, and then with the next, or with none."""

    clock: Clock
    batch_ends_at: float | None = None
    """None where no batch is under way."""
    goes_on: bool = False
    isActive: bool = True  # noqa: N815
    stopped_at: float | None = field(default=None, init=False)

    @property
    def is_done(self) -> bool:
        return self.batch_ends_at is not None and self.clock.now_s >= self.batch_ends_at

    @property
    def status(self) -> dict[str, bool]:
        is_busy = self.batch_ends_at is not None and (self.goes_on or not self.is_done)
        return {"isTriggerActive": is_busy, "isDataAvailable": is_busy}

    @property
    def lastProgress(self) -> dict[str, Any]:  # noqa: N802
        return {"batchId": 7 if self.is_done else 6, "sources": []}

    def exception(self) -> None:
        """It has ended as asked."""

    def stop(self) -> None:
        self.isActive, self.stopped_at = False, self.clock.now_s


class LostQuery:
    """A query of a Spark that is gone, at once or when it is asked the second time."""

    def __init__(self, answers: int) -> None:
        self._answers = answers

    @property
    def isActive(self) -> bool:  # noqa: N802
        if self._answers == 0:
            return self.lastProgress
        self._answers -= 1
        return False

    @property
    def lastProgress(self) -> NoReturn:  # noqa: N802
        raise Py4JNetworkError("Answer from Java side is empty")


@pytest.fixture
def clock() -> Clock:
    return Clock()


Ended = Callable[..., PipelineRunner]


@pytest.fixture
def ended(tmp_path: Path, clock: Clock) -> Ended:
    """A runner of these queries, of one flow each, after it was asked to end."""
    run = standing_run(tmp_path, clock=clock)

    def end(*queries: Query, is_stopped: bool = True, **changes: Any) -> PipelineRunner:
        runner = PipelineRunner(run)
        (flow,) = run.pipeline.flows
        runner.flows = [RunningFlow(run, flow, cast(Any, query)) for query in queries]
        for name, value in changes.items():
            setattr(runner, name, value)
        runner.end(lambda: is_stopped)
        return runner

    return end


@pytest.mark.parametrize(
    ("ends_after_s", "goes_on", "stopped_after_s"),
    [
        pytest.param(None, False, 0.0, id="an idle one at once"),
        pytest.param(3.0, False, 3.0, id="a busy one when its batch is done"),
        pytest.param(3.0, True, 3.0, id="one whose next batch begins at once, too"),
        pytest.param(999.0, False, 20.0, id="one whose batch takes long is cut off"),
    ],
)
def test_a_flow_is_stopped_between_two_batches_if_that_comes_soon(
    ends_after_s: float | None, goes_on: bool, stopped_after_s: float, clock: Clock, ended: Ended
) -> None:
    begun_at = clock.now_s
    ends_at = None if ends_after_s is None else begun_at + ends_after_s
    query = Query(clock, ends_at, goes_on)
    ended(query)
    assert query.stopped_at is not None
    assert query.stopped_at - begun_at == pytest.approx(stopped_after_s, abs=0.11)


def test_a_slow_flow_does_not_hold_up_the_stop_of_others(clock: Clock, ended: Ended) -> None:
    begun_at = clock.now_s
    slow, idle = Query(clock, begun_at + 999.0), Query(clock)
    ended(slow, idle)
    assert idle.stopped_at == begun_at


def test_a_flow_whose_query_has_ended_is_not_stopped_again(clock: Clock, ended: Ended) -> None:
    query = Query(clock, isActive=False)
    ended(query)
    assert query.stopped_at is None


def test_waiting_views_and_upkeep_are_cancelled_at_the_end(ended: Ended) -> None:
    view, tidying = Future[bool](), Future[None]()
    running = RunningView(cast(Any, SimpleNamespace(name="refined.n")), cast(Any, None), view)
    ended(views=[running], _tidying=tidying, write_status=lambda state: None)
    assert (view.cancelled(), tidying.cancelled()) == (True, True)


def test_failed_upkeep_is_logged(ended: Ended, caplog: pytest.LogCaptureFixture) -> None:
    tidying = Future[None]()
    tidying.set_exception(ValueError("half of a note"))
    ended(_tidying=tidying)
    (told,) = caplog.records
    assert told.message == "tables not tidied"
    assert told.exc_info is not None
    assert str(told.exc_info[1]) == "half of a note"


@pytest.mark.parametrize(("has_failed", "state"), [(False, "stopped"), (True, "failed")])
def test_the_status_shows_how_the_run_ended(
    has_failed: bool, state: str, clock: Clock, ended: Ended
) -> None:
    runner = ended(Query(clock))
    if has_failed:
        runner.flows[0].give_up(Failure("DataLost", "records are gone"))
        runner.end(lambda: True)
    written = runner.run.state.read_status()
    assert written is not None
    assert (written.state, runner.status.state) == (state, state)


@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize(("is_stopped", "state"), [(True, "stopped"), (False, "failed")])
def test_the_status_is_written_also_when_spark_is_gone_before(
    is_stopped: bool, state: str, answers: int, clock: Clock, ended: Ended
) -> None:
    """A signal to the whole group ends the JVM while the driver still reads its status."""
    runner = ended(cast(Any, LostQuery(answers)), Query(clock), is_stopped=is_stopped)
    written = runner.run.state.read_status()
    assert written is not None
    assert (written.state, [flow.state for flow in written.flows]) == (state, ["ended", "ended"])


@pytest.mark.parametrize("is_stopped", [True, False])
def test_an_unexpected_end_of_spark_is_logged(
    is_stopped: bool, ended: Ended, caplog: pytest.LogCaptureFixture
) -> None:
    ended(cast(Any, LostQuery(0)), is_stopped=is_stopped)
    logged = [(one.message, vars(one)["error"]) for one in caplog.records]
    lost = ("pipeline not ended in order, Spark is lost", "Answer from Java side is empty")
    assert logged == ([] if is_stopped else [lost])
