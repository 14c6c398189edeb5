"""How a continuous run goes on, and ends: each flow between two batches, if that comes soon."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from py4j.protocol import Py4JNetworkError

from headrace.lake.catalog import Lake
from headrace.lake.errors import WriteFailed
from headrace.pipelines.running import runner as runner_module
from headrace.pipelines.running.restarts import Failure
from headrace.pipelines.running.runner import PipelineRunner, RunningView, run_continuously
from headrace.pipelines.running.running_flow import RunningFlow
from headrace.pipelines.running.state import PipelineState
from headrace.runtime import files
from headrace.spark import fair_shares
from tests.declared_pipelines import load_folder

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);"


@dataclass(slots=True)
class Clock:
    """A time that passes only while someone waits."""

    now_s: float = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return round(self.now_s * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


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
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(runner_module, "time", made)
    return made


Ended = Callable[..., PipelineRunner]


def standing_run(folder: Path, name: str = "shop") -> Any:
    """A run whose flows nobody has started, with a place to write down how it stands."""
    state = PipelineState(folder / "state")
    state.directory.mkdir(parents=True)
    return SimpleNamespace(
        name=name,
        spark=None,
        pipeline=load_folder(folder, {"a.sql": TABLE}),
        state=state,
        generations={},
        lake=Lake(folder / "lake"),
        preparation=SimpleNamespace(inputs={"raw.x": set()}),
        flows=lambda: (),
        moving=lambda: SimpleNamespace(views=set(), settle=lambda: None),
        flow_state=lambda flow: state.flow(flow.name, 0),
        is_current=lambda: True,
    )


@pytest.fixture
def ended(tmp_path: Path, clock: Clock) -> Ended:
    """A runner of these queries, of one flow each, after it was asked to end."""
    run = standing_run(tmp_path)

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


def test_what_waits_to_be_computed_or_tidied_is_not_begun_any_more(ended: Ended) -> None:
    view, tidying = Future[bool](), Future[None]()
    running = RunningView(cast(Any, SimpleNamespace(name="refined.n")), cast(Any, None), view)
    ended(views=[running], _tidying=tidying, write_status=lambda state: None)
    assert (view.cancelled(), tidying.cancelled()) == (True, True)


def test_tidying_that_has_failed_is_told_of(ended: Ended, caplog: pytest.LogCaptureFixture) -> None:
    tidying = Future[None]()
    tidying.set_exception(ValueError("half of a note"))
    ended(_tidying=tidying)
    (told,) = caplog.records
    assert told.message == "the tables of shop were not tidied"
    assert told.exc_info is not None
    assert str(told.exc_info[1]) == "half of a note"


@pytest.mark.parametrize(("has_failed", "state"), [(False, "stopped"), (True, "failed")])
def test_the_status_says_how_it_has_ended(
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
    """A signal to the whole group ends the JVM while the driver still asks it, or tells of it."""
    runner = ended(cast(Any, LostQuery(answers)), Query(clock), is_stopped=is_stopped)
    written = runner.run.state.read_status()
    assert written is not None
    assert (written.state, [flow.state for flow in written.flows]) == (state, ["ended", "ended"])


@pytest.mark.parametrize("is_stopped", [True, False])
def test_an_end_of_spark_that_nobody_asked_for_is_told_of(
    is_stopped: bool, ended: Ended, caplog: pytest.LogCaptureFixture
) -> None:
    ended(cast(Any, LostQuery(0)), is_stopped=is_stopped)
    told = [(one.message, one.exc_info and str(one.exc_info[1])) for one in caplog.records]
    lost = ("shop did not end in order", "Answer from Java side is empty")
    assert told == ([] if is_stopped else [lost])


class Room:
    """Whether there is any on the disk of some folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_left = True
        self._folder = str(folder)
        self._replace_file = files.replace_file
        monkeypatch.setattr(files, "replace_file", self.replace_file)

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        if path.startswith(self._folder) and not self.is_left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._replace_file(path, content, sync=sync)


@pytest.fixture
def two(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[PipelineRunner]:
    """The runners of two pipelines, each with a lake of its own, in one driver."""
    monkeypatch.setattr(fair_shares, "kept", lambda *_: nullcontext())
    return [PipelineRunner(standing_run(tmp_path / name, name)) for name in ("shop", "bank")]


def test_a_pipeline_whose_disk_is_full_runs_on_and_says_so_once_until_there_is_room(
    two: list[PipelineRunner],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    room, shown = Room(tmp_path / "shop", monkeypatch), list[list[str]]()

    def show(runners: list[PipelineRunner]) -> None:
        shown.append([runner.status.state for runner in runners])
        room.is_left = len(shown) in (3, 4)

    room.is_left = False
    run_continuously(two, lambda: len(shown) == 6, show)
    assert shown == [["running", "running"]] * 6
    assert [one.message.partition(":")[0] for one in caplog.records] == [
        "how shop stands is not written down"
    ] * 2
    assert "make room" in caplog.text
    written = [runner.run.state.read_status() for runner in two]
    assert [one.state for one in written if one is not None] == ["running", "stopped"]


def test_every_pipeline_is_ended_whatever_the_end_of_another_raises(
    two: list[PipelineRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(is_stopped: object) -> NoReturn:
        raise ValueError("half of a note")

    monkeypatch.setattr(two[0], "end", fail)
    with pytest.raises(ValueError, match="half of a note"):
        run_continuously(two, lambda: True, lambda runners: None)
    written = two[1].run.state.read_status()
    assert written is not None
    assert written.state == "stopped"


def test_readers_who_cannot_be_moved_for_want_of_room_end_nothing(
    two: list[PipelineRunner], caplog: pytest.LogCaptureFixture
) -> None:
    def settle() -> NoReturn:
        raise WriteFailed("catalog.json could not be written")

    shown: list[str] = []
    two[0].moving = cast(Any, SimpleNamespace(views={"refined.n"}, settle=settle))
    run_continuously(two, lambda: len(shown) == 3, lambda runners: shown.append(""))
    (told,) = caplog.messages
    assert told.startswith("readers of shop stay with the tables of before: catalog.json")


def test_a_view_that_finds_no_room_has_failed_and_ends_nothing(
    two: list[PipelineRunner], tmp_path: Path
) -> None:
    def refresh() -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "report.json")

    state = SimpleNamespace(spark_log=tmp_path / "spark.log")
    view = SimpleNamespace(name="refined.n", refresh=refresh, run=SimpleNamespace(state=state))
    running = RunningView(cast(Any, view), cast(Any, None))
    assert not two[0]._refresh(running)
    assert running.failure is not None
    assert "make room" in running.failure
