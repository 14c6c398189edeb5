"""One pipeline while it runs: all its flows and views, in one pass or until it is stopped."""

import datetime as dt
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from headrace.lake.errors import WriteFailed
from headrace.pipelines.model import TemporaryView
from headrace.pipelines.running.errors import (
    ExpectationFailed,
    errors_of_spark,
    spark_ended_with_us,
)
from headrace.pipelines.running.followers import followers
from headrace.pipelines.running.freshness import FreshnessWatch
from headrace.pipelines.running.pipeline_run import PipelineRun, is_lambda, now
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.restarts import Failure
from headrace.pipelines.running.running_flow import RunningFlow
from headrace.pipelines.running.running_view import RunningView
from headrace.pipelines.running.schedules import SetBack, Timeline
from headrace.pipelines.running.tidying import TableTidying
from headrace.pipelines.running.views import computed_views
from headrace.pipelines.status import PipelineStatus

_log = logging.getLogger(__name__)

QUERIES_MAX = 4
"""How many flows of one level a single pass runs side by side."""
TICK_S = 0.1
"""How long to wait before one looks again."""
_TIDY_EVERY_S = 60.0
_STOP_S_MAX = 20.0


@dataclass(slots=True)
class Writing:
    """Something that is written again and again, and need not be: told once while it cannot be."""

    what: str
    has_failed: bool = False

    def attempt(self, write: Callable[[], None]) -> None:
        """Try it; the disk may be full, and others may have room on theirs."""
        try:
            write()
        except WriteFailed as error:
            if not self.has_failed:
                _log.warning("%s: %s", self.what, error)
            self.has_failed = True
        else:
            self.has_failed = False


class PipelineRunner:
    """A pipeline's flows and views, in one of two ways: `once`, or `begin`, `tick` and `end`."""

    def __init__(self, run: PipelineRun) -> None:
        self.run = run
        self.flows = [RunningFlow(run, flow) for flow in run.flows()]
        self.views = [
            RunningView(view, Timeline(view.schedule))
            for view in computed_views(run, is_lambda=is_lambda(run.pipeline))
        ]
        self.started_at = now()
        self.freshness = FreshnessWatch.of(run.pipeline.datasets)
        self.moving = run.moving()
        self.mode = ""
        self.status = PipelineStatus(pipeline=run.name, state="starting")
        """How the pipeline stood when that was last written down."""
        self.undone: list[str] = []
        """What a single pass has not come to the end of, because it was asked to stop."""
        self._telling = Writing(f"how {run.name} stands is not written down")
        self._moving_on = Writing(f"readers of {run.name} stay with the tables of before")
        self._set_back = SetBack()
        self._tidy_at = time.monotonic() + _TIDY_EVERY_S
        self._tables = TableTidying(run.lake)
        self._tidying: Future[None] | None = None

    # One pass.

    def once(self, is_stopped: Callable[[], bool]) -> None:
        """Bring everything through that is there now, in the order of who reads whom."""
        self.mode = "once"
        levels = self.run.preparation.levels()
        datasets = self.run.pipeline.datasets
        kept = (name for level in levels for name in level)
        self.undone = [name for name in kept if not isinstance(datasets[name], TemporaryView)]
        with spark_ended_with_us(is_stopped):
            self._levels_once(levels, is_stopped)
        self.moving.settle()
        if self.undone:
            self._forget_interrupted()
            self.write_status("stopped")
            return
        self._judge_freshness(since=None)
        self._tidy()
        self.write_status("failed" if self.failures() else "done")

    def _levels_once(self, levels: list[list[str]], is_stopped: Callable[[], bool]) -> None:
        failed: set[str] = set()
        for level in levels:
            ready = [n for n in level if not (self.run.preparation.inputs[n] & failed)]
            failed.update(set(level) - set(ready))
            failed.update(self.flows_once(ready, is_stopped))
            if is_stopped() and not self._are_over(ready):
                return
            views = self._views_once(ready)
            failed.update(views)
            if is_stopped() and views:
                return  # Whether they failed by themselves is found out by the next run.
            self.write_status("running")
            self.undone = [name for name in self.undone if name not in level]
            if is_stopped():
                return

    def _are_over(self, names: Iterable[str]) -> bool:
        """Whether all that writes to these has come to its end, so that a stop cut nothing off."""
        views = {running.view.name for running in self.views}
        flows = [one for one in self.flows if one.flow.target in set(names)]
        return not views & set(names) and all(one.is_over for one in flows)

    def _forget_interrupted(self) -> None:
        """Take a failure that a stop has caused for no failure: the next run goes on there."""
        for running in self.flows:
            running.query = None
            if running.failure is not None and not running.failure.is_final:
                running.failure = None
        for view in self.views:
            if view.view.name in self.undone:
                view.failure = None

    def flows_once(self, names: Iterable[str], is_stopped: Callable[[], bool]) -> set[str]:
        """Run the flows into these datasets; the answer is which of them failed."""
        wanted = [one for one in self.flows if one.flow.target in set(names)]
        for running in [one for one in wanted if one.flow.realtime is not None]:
            _log.info("%s runs in real-time mode, so only in a continuous run", running.flow.name)
            wanted.remove(running)
        for running in wanted:
            running.is_over = False
        while not is_stopped():
            for running in wanted:
                running.settle()
            active = [one for one in wanted if one.is_active]
            due = [one for one in wanted if one.query is None and one.is_due]
            for running in due[: QUERIES_MAX - len(active)]:
                running.start(is_once=True)
            self.write_status("running")
            if all(one.is_over for one in wanted):
                break
            time.sleep(TICK_S)
        for running in wanted:
            running.stop()
        return {running.flow.target for running in wanted if running.has_failed}

    def _views_once(self, names: Iterable[str]) -> set[str]:
        failed = set()
        for running in self.views:
            if running.view.name in set(names):
                running.refresh()
                if running.failure is not None:
                    failed.add(running.view.name)
        return failed

    # For ever.

    def begin(self) -> None:
        """Start all flows."""
        self.mode = "continuous"
        self._moving_on.attempt(self.moving.settle)
        for running in self.flows:
            if not self.waits(running.flow.target):
                running.start(is_once=False)

    def tick(self, views: ThreadPoolExecutor, tidying: ThreadPoolExecutor) -> None:
        """Start again what has failed and may, or waits in vain, and refresh what is due."""
        self._moving_on.attempt(self.moving.settle)
        is_set_back = self._set_back.is_noticed(time.time_ns() / 1e9, time.monotonic())
        for running in self.flows:
            running.settle()
            running.is_renewal_due |= is_set_back and running.flow.realtime is None
            running.renew()
            is_startable = running.is_due and not self.waits(running.flow.target)
            if running.query is None and is_startable:
                running.start(is_once=False)
        for view in self.views:
            if not self.waits(view.view.name):
                self._schedule(view, views)
        self._judge_freshness(since=self.started_at)
        self._tidy_now_and_then(tidying)

    def _tidy_now_and_then(self, pool: ThreadPoolExecutor) -> None:
        self._settle_tidying()
        if self._tidying is None and time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + _TIDY_EVERY_S
            self._tidying = pool.submit(self._tidy)

    def _settle_tidying(self) -> None:
        """Tell of what nobody has foreseen: the next look meets it again."""
        if self._tidying is None or not self._tidying.done():
            return
        if not self._tidying.cancelled() and (error := self._tidying.exception()) is not None:
            _log.error("the tables of %s were not tidied", self.run.name, exc_info=error)
        self._tidying = None

    def waits(self, name: str) -> bool:
        """Whether a dataset looks up a merged view that has yet to catch up in other tables."""
        return not self.run.preparation.inputs[name].isdisjoint(self.moving.views)

    def give_up(self, reason: str) -> None:
        """Let no flow be started again."""
        for running in self.flows:
            running.give_up(Failure("PipelineError", reason))

    def end(self, is_stopped: Callable[[], bool]) -> None:
        """Stop all, and write down how it has ended, also where Spark cannot be asked any more."""
        try:
            self._stop_flows()
            self._close("failed" if self.failures() else "stopped")
        except errors_of_spark():
            # The signal that asks us to stop may have ended Spark before, and all queries with it.
            if not is_stopped():
                _log.error("%s did not end in order", self.run.name, exc_info=True)
            for running in self.flows:
                running.query = None
            self._close("stopped" if is_stopped() and not self.failures() else "failed")

    def _stop_flows(self) -> None:
        """Stop each flow between two batches, if that comes soon.

        Those of a busy flow, or in real time, follow without a pause: when one more is done, the
        next has just begun, and little is lost. What is cut off is repeated at the next run, which
        its token makes safe.
        """
        deadline = time.monotonic() + _STOP_S_MAX
        active = [(one, one.last_batch) for one in self.flows if one.is_active]
        while active:
            is_late = time.monotonic() >= deadline
            for running, batch in active:
                is_next_begun = running.last_batch > batch
                if is_late or is_next_begun or not running.is_busy:
                    running.stop()
            active = [(one, batch) for one, batch in active if one.is_active]
            time.sleep(TICK_S)

    def _close(self, state: str) -> None:
        """Begin nothing more, and tell the state in which that leaves the pipeline."""
        for view in self.views:
            if view.future is not None:
                view.future.cancel()
        self._settle_tidying()
        if self._tidying is not None:
            self._tidying.cancel()
        self.write_status(state)

    def _schedule(self, running: RunningView, pool: ThreadPoolExecutor) -> None:
        if running.future is not None:
            if not running.future.done():
                return
            running.settle()
        moment = now()
        due = running.timeline.next_at(running.view.last_run(), moment)
        running.next_at = running.retries.put_off(due, moment, time.monotonic())
        if running.next_at <= moment:
            running.next_at = None
            running.future = pool.submit(running.refresh)

    # Both.

    def _judge_freshness(self, since: dt.datetime | None) -> None:
        """Find out which tables are stale; a flow into one that must not be has failed."""
        if not self.freshness.expected:
            return
        since_ms = None if since is None else round(since.timestamp() * 1000)
        self.freshness.look(self._newest(), round(now().timestamp() * 1000), since_ms)
        for running in self.flows:
            text = self.freshness.failed.get(running.flow.target)
            if text is not None and not running.has_failed:
                running.give_up(Failure(ExpectationFailed.__name__, text))

    def _newest(self) -> dict[str, dict[str, int]]:
        """What the reports say of the tables that are to be fresh; several flows may feed one."""
        reports = [(one.flow.target, one.report()) for one in self._fresh_flows()]
        reports += [
            (one.view.name, Report.read(one.view.state.report))
            for one in self.views
            if one.view.name in self.freshness.expected
        ]
        found: dict[str, dict[str, int]] = {}
        for table, report in reports:
            newest = found.setdefault(table, {})
            for name, at_ms in report.newest_ms.items():
                newest[name] = max(at_ms, newest.get(name, at_ms))
        return found

    def _fresh_flows(self) -> list[RunningFlow]:
        return [one for one in self.flows if one.flow.target in self.freshness.expected]

    def _tidy(self) -> None:
        """Join small files of tables that have had many commits since this was last done.

        Not while merged views move: which commits must be told apart for them is not known yet.
        """
        if self.moving.views:
            return
        tables = {name: self.run.generation_of(name) for name in self.run.preparation.made}
        own = (self.run.flow_state(one.flow) for one in self.flows)
        self._tables.look(tables, followers(self.run.lake, own))

    def failures(self) -> list[str]:
        """What is wrong with each flow and view that is not running as it should."""
        log = self.run.state.spark_log
        flows = [
            f"{running.flow.place}: the flow {running.flow.name} failed:"
            f" {running.failure.told(log)}"
            for running in self.flows
            if running.has_failed and running.failure is not None
        ]
        views = [
            f"{running.view.view.place}: {running.view.name} was not refreshed: {running.failure}"
            for running in self.views
            if running.failure is not None
        ]
        stale = [
            f"{running.view.view.place}: {text}"
            for running in self.views
            if (text := self.freshness.failed.get(running.view.name))
        ]
        return flows + views + stale

    def write_status(self, state: str) -> None:
        """Tell how the pipeline stands; what is built beside it is not what stands.

        Rows go on where it cannot be written down.
        """
        if self.run.generations:
            return
        from headrace.pipelines.running.status import status_of

        self.status = status_of(self, state)
        self._telling.attempt(partial(self.run.state.write_status, self.status))
