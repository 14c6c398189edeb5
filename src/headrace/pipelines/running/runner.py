"""Runs pipelines in one driver: each once, to the end of what is there, or all until stopped."""

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError
from headrace.pipelines.model import Flow
from headrace.pipelines.running.errors import FlowsFailed
from headrace.pipelines.running.pipeline_run import PipelineRun, is_lambda, now
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.restarts import Failure, Restarts, failure_of
from headrace.pipelines.running.views import ComputedView, computed_views

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)

QUERIES_MAX = 4
"""How many flows of one level a single pass runs side by side."""
_TICK_S = 0.25
_STATUS_EVERY_S = 1.0
_CATALOG_EVERY_S = 2.0


@dataclass(slots=True)
class RunningFlow:
    """A flow, the query that runs it now, and what has gone wrong with it so far."""

    flow: Flow
    query: "StreamingQuery | None" = None
    restarts: Restarts = field(default_factory=Restarts)
    failure: Failure | None = None
    """Why it is not running, or was not when it was last looked at."""
    is_given_up: bool = False

    def lag(self) -> int | None:
        """How many records of its topics the flow has yet to read."""
        progress = self.query.lastProgress if self.query is not None else None
        if progress is None:
            return None
        return lag_of(progress)


@dataclass(slots=True)
class RunningView:
    """A view that is computed whole, and when that was and will be."""

    view: ComputedView
    future: "Future[bool] | None" = None
    failure: str | None = None
    next_at: Any = None


class PipelineRunner:
    """One pipeline's flows and views while they run."""

    def __init__(self, run: PipelineRun) -> None:
        self.run = run
        self.flows = [RunningFlow(flow) for flow in run.flows()]
        self.views = [
            RunningView(view) for view in computed_views(run, is_lambda=is_lambda(run.pipeline))
        ]
        self.started_at = now()
        self.mode = ""

    # One pass.

    def once(self, is_stopped: Callable[[], bool]) -> None:
        """Bring everything through that is there now, in the order of who reads whom."""
        self.mode = "once"
        failed: set[str] = set()
        for level in self.run.preparation.levels():
            ready = [n for n in level if not (self.run.preparation.inputs[n] & failed)]
            failed.update(set(level) - set(ready))
            failed.update(self._flows_once(ready, is_stopped))
            failed.update(self._views_once(ready))
            self.write_status("running")
            if is_stopped():
                break
        self.write_status("failed" if self.failures() else "done")

    def _flows_once(self, names: Iterable[str], is_stopped: Callable[[], bool]) -> set[str]:
        """Run the flows into these datasets; the answer is which of them failed."""
        waiting = [running for running in self.flows if running.flow.target in set(names)]
        active: list[RunningFlow] = []
        while (waiting or active) and not is_stopped():
            moment = time.monotonic()
            for running in list(waiting):
                if len(active) < QUERIES_MAX and running.restarts.not_before <= moment:
                    waiting.remove(running)
                    self._start(running, is_once=True)
                    active.append(running)
            for running in [one for one in active if not is_active(one)]:
                active.remove(running)
                if self._has_failed(running) and not running.is_given_up:
                    waiting.append(running)
            self.write_status("running")
            time.sleep(_TICK_S)
        for running in active:
            stop_query(running)
        return {running.flow.target for running in self.flows if running.is_given_up}

    def _views_once(self, names: Iterable[str]) -> set[str]:
        failed = set()
        for running in self.views:
            if running.view.name in set(names):
                self._refresh(running)
                if running.failure is not None:
                    failed.add(running.view.name)
        return failed

    # For ever.

    def begin(self) -> None:
        """Start all flows."""
        self.mode = "continuous"
        for running in self.flows:
            self._start(running, is_once=False)

    def tick(self, pool: ThreadPoolExecutor) -> None:
        """Start again what has failed and may, and refresh what is due."""
        for running in self.flows:
            self._revive(running)
        for view in self.views:
            self._schedule(view, pool)

    def end(self) -> None:
        """Stop the flows; a batch under way is left to be repeated, which its token makes safe."""
        for running in self.flows:
            stop_query(running)
        for view in self.views:
            if view.future is not None:
                view.future.cancel()
        self.write_status("failed" if self.failures() else "stopped")

    def _revive(self, running: RunningFlow) -> None:
        if running.is_given_up or is_active(running):
            return
        if running.query is not None:
            if not self._has_failed(running):
                # A flow that runs once has come to its end.
                running.is_given_up = True
                return
            running.query = None
        if not running.is_given_up and time.monotonic() >= running.restarts.not_before:
            self._start(running, is_once=False)

    def _schedule(self, running: RunningView, pool: ThreadPoolExecutor) -> None:
        if running.future is not None:
            if not running.future.done():
                return
            running.future = None
        moment = now()
        running.next_at = running.view.schedule.next_after(running.view.last_run(), moment)
        if running.next_at <= moment:
            running.future = pool.submit(self._refresh, running)

    def _refresh(self, running: RunningView) -> bool:
        from pyspark.errors import PySparkException

        try:
            running.failure = None
            return running.view.refresh()
        except (HeadraceError, PySparkException) as error:
            running.failure = failure_of(f"{type(error).__name__}: {error}").text
            _log.error("%s was not refreshed: %s", running.view.name, running.failure)
            return False

    # Both.

    def failures(self) -> list[str]:
        """What is wrong with each flow and view that is not running as it should."""
        flows = [
            f"{running.flow.place}: the flow {running.flow.name} failed: {running.failure.text}"
            for running in self.flows
            if running.is_given_up and running.failure is not None
        ]
        views = [
            f"{running.view.view.place}: {running.view.name} was not refreshed: {running.failure}"
            for running in self.views
            if running.failure is not None
        ]
        return flows + views

    def _start(self, running: RunningFlow, *, is_once: bool) -> None:
        running.query = self.run.start(running.flow, is_once=is_once)

    def _has_failed(self, running: RunningFlow) -> bool:
        """Whether a query that has ended did so with an error; notes it, and what to do."""
        assert running.query is not None, "only started flows end"
        error = running.query.exception()
        if error is None:
            running.failure = None
            return False
        running.failure = failure_of(str(error))
        batch = Report.read(self.run.flow_state(running.flow).report).batch
        may_restart = running.restarts.on_failure(running.failure, batch, time.monotonic())
        running.is_given_up = not may_restart
        level = logging.WARNING if may_restart else logging.ERROR
        _log.log(level, "the flow %s failed: %s", running.flow.name, running.failure.text)
        return True

    def write_status(self, state: str) -> None:
        from headrace.pipelines.running.status import status_of

        self.run.state.write_status(status_of(self, state))


def run_once(runners: list[PipelineRunner], is_stopped: Callable[[], bool]) -> None:
    """Run each pipeline to the end of what is there; an error names every flow that failed."""
    for runner in runners:
        runner.once(is_stopped)
    raise_failures(runners)


def run_continuously(
    runners: list[PipelineRunner],
    is_stopped: Callable[[], bool],
    show: Callable[[list[PipelineRunner]], None],
) -> None:
    """Run all pipelines until told to stop; flows that fail for good do not end the others."""
    begun: list[PipelineRunner] = []
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="views") as pool:
        try:
            for runner in runners:
                runner.begin()
                begun.append(runner)
            _keep_running(runners, pool, is_stopped, show)
        finally:
            for runner in begun:
                runner.end()
    raise_failures(runners)


def _keep_running(
    runners: list[PipelineRunner],
    pool: ThreadPoolExecutor,
    is_stopped: Callable[[], bool],
    show: Callable[[list[PipelineRunner]], None],
) -> None:
    status_at = catalog_at = 0.0
    while not is_stopped():
        moment = time.monotonic()
        if moment >= catalog_at:
            catalog_at = moment + _CATALOG_EVERY_S
            for number, runner in enumerate(runners):
                runners[number] = followed(runner)
        for runner in runners:
            runner.tick(pool)
        if moment >= status_at:
            status_at = moment + _STATUS_EVERY_S
            for runner in runners:
                runner.write_status("running")
            show(runners)
        if all(is_at_end(runner) for runner in runners):
            return
        time.sleep(_TICK_S)


def followed(runner: PipelineRunner) -> PipelineRunner:
    """The runner, or a new one on the tables that count now if a replay has switched them."""
    if runner.run.is_current():
        return runner
    _log.info("the tables of %s were switched; going on with them", runner.run.name)
    for running in runner.flows:
        stop_query(running)
    renewed = PipelineRun(runner.run.spark, runner.run.pipeline)
    renewed.prepare()
    successor = PipelineRunner(renewed)
    successor.started_at = runner.started_at
    successor.begin()
    return successor


def is_at_end(runner: PipelineRunner) -> bool:
    """Whether no flow of a pipeline will do anything any more."""
    return bool(runner.flows) and all(running.is_given_up for running in runner.flows)


def raise_failures(runners: Iterable[PipelineRunner]) -> None:
    failures = [text for runner in runners for text in runner.failures()]
    if failures:
        raise FlowsFailed(failures)


def is_active(running: RunningFlow) -> bool:
    return running.query is not None and running.query.isActive


def stop_query(running: RunningFlow) -> None:
    if is_active(running):
        assert running.query is not None
        running.query.stop()


def lag_of(progress: Any) -> int | None:
    """Records behind the end of the topics, from what the sources report of themselves."""
    behind: int | None = None
    for source in progress["sources"] if isinstance(progress, dict) else progress.sources:
        end, latest = _parsed(source, "endOffset"), _parsed(source, "latestOffset")
        for topic, partitions in latest.items():
            if isinstance(partitions, dict):
                done = end.get(topic, {})
                behind = (behind or 0) + sum(
                    max(0, int(to) - int(done.get(partition, 0)))
                    for partition, to in partitions.items()
                )
    return behind


def _parsed(source: Any, name: str) -> dict[str, Any]:
    import json

    value = source[name] if isinstance(source, dict) else getattr(source, name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
