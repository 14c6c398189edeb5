"""A running pipeline: all its flows and views, in one pass or until stopped."""

import datetime as dt
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from headrace.lake.errors import WriteFailed
from headrace.pipelines.analysing.spark_errors import short_text
from headrace.pipelines.model import TemporaryView
from headrace.pipelines.running.driving.freshness import FreshnessWatch
from headrace.pipelines.running.driving.restarts import Failure
from headrace.pipelines.running.driving.running_flow import RunningFlow
from headrace.pipelines.running.driving.running_view import RunningView
from headrace.pipelines.running.driving.schedules import SetBack, Timeline, monotonic_s, utc_now
from headrace.pipelines.running.driving.status import flow_status, moment_text, view_status
from headrace.pipelines.running.errors import (
    ExpectationFailed,
    errors_of_spark,
    spark_ended_with_us,
)
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.reports import Report
from headrace.pipelines.running.tables.followers import followers
from headrace.pipelines.running.tables.upkeep import TableTidying
from headrace.pipelines.running.views.computed import computed_views
from headrace.pipelines.status import PipelineStatus

_log = logging.getLogger(__name__)

QUERIES_MAX = 4
"""The number of flows of one level that a single pass runs in parallel."""
TICK_S = 0.1
"""The pause between two checks of the flows."""
_TIDY_EVERY_S = 60.0
_STOP_S_MAX = 20.0
_OVER = ("stopped", "done", "failed")
"""The states of a pipeline that no longer runs."""


@dataclass(slots=True)
class Writing:
    """A repeated write that may fail, as on a full disk, without stopping the rows."""

    has_failed: bool = False

    def attempt(self, write: Callable[[], None]) -> WriteFailed | None:
        """Write; return the error of the first of several failures in a row."""
        try:
            write()
        except WriteFailed as error:
            is_first, self.has_failed = not self.has_failed, True
            return error if is_first else None
        self.has_failed = False
        return None


class PipelineRunner:
    """A pipeline's flows and views, in one of two ways: `once`, or `begin`, `tick` and `end`."""

    def __init__(self, run: PipelineRun) -> None:
        self.run = run
        self.flows = [RunningFlow(run, flow) for flow in run.flows()]
        self.views = [RunningView(view, Timeline(view.schedule)) for view in computed_views(run)]
        self.started_at = utc_now(run.clock)
        self.freshness = FreshnessWatch.of(run.pipeline.datasets)
        self.migrations = run.view_migrations()
        self.mode = ""
        self.status = PipelineStatus(pipeline=run.name, state="starting")
        """The last written status."""
        self.undone: list[str] = []
        """The datasets that a stopped pass has not completed."""
        self._status_writing = Writing()
        self._migrating = Writing()
        self._set_back = SetBack()
        self._tidy_at = monotonic_s(run.clock) + _TIDY_EVERY_S
        self._tables = TableTidying(run.lake)
        self._tidying: Future[None] | None = None

    # One pass.

    def once(self, is_stopped: Callable[[], bool]) -> None:
        """Move all available rows through the pipeline, inputs first."""
        self.mode = "once"
        levels = self.run.preparation.levels()
        datasets = self.run.pipeline.datasets
        kept = (name for level in levels for name in level)
        self.undone = [name for name in kept if not isinstance(datasets[name], TemporaryView)]
        with spark_ended_with_us(is_stopped):
            self._levels_once(levels, is_stopped)
        self.migrations.complete()
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
                return  # The next run finds the real failures.
            self.write_status("running")
            self.undone = [name for name in self.undone if name not in level]
            if is_stopped():
                return

    def _are_over(self, names: Iterable[str]) -> bool:
        """Return whether these datasets are complete although the pass was stopped."""
        views = {running.view.name for running in self.views}
        flows = [one for one in self.flows if one.flow.target in set(names)]
        return not views & set(names) and all(one.is_over for one in flows)

    def _forget_interrupted(self) -> None:
        """Clear failures that a stop has caused: the next run continues there."""
        for running in self.flows:
            running.query = None
            if running.failure is not None and not running.failure.is_final:
                running.failure = None
        for view in self.views:
            if view.view.name in self.undone:
                view.failure = None

    def flows_once(self, names: Iterable[str], is_stopped: Callable[[], bool]) -> set[str]:
        """Run the flows into these datasets; return the targets of failed flows."""
        wanted = [one for one in self.flows if one.flow.target in set(names)]
        for running in [one for one in wanted if one.flow.realtime is not None]:
            _log.info(
                "real-time flow skipped, it needs a continuous run",
                extra={"flow": running.flow.name},
            )
            wanted.remove(running)
        for running in wanted:
            running.is_over = False
        while not is_stopped():
            for running in wanted:
                running.poll()
            active = [one for one in wanted if one.is_active]
            due = [one for one in wanted if one.query is None and one.is_due]
            for running in due[: QUERIES_MAX - len(active)]:
                running.start(is_once=True)
            self.write_status("running")
            if all(one.is_over for one in wanted):
                break
            self.run.clock.sleep(TICK_S)
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

    # Until stopped.

    def begin(self) -> None:
        """Start all flows."""
        self.mode = "continuous"
        self._complete_moves()
        for running in self.flows:
            if not self.waits(running.flow.target):
                running.start(is_once=False)

    def tick(self, views: ThreadPoolExecutor, tidying: ThreadPoolExecutor) -> None:
        """Restart failed or stuck flows whose back-off is over, and refresh views that are due."""
        self._complete_moves()
        clock = self.run.clock
        is_set_back = self._set_back.is_noticed(clock.now_ms() / 1000, monotonic_s(clock))
        for running in self.flows:
            running.poll()
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

    def _complete_moves(self) -> None:
        if error := self._migrating.attempt(self.migrations.complete):
            _log.warning(
                "readers not switched to the new tables",
                extra={"pipeline": self.run.name, "error": str(error)},
            )

    def _tidy_now_and_then(self, pool: ThreadPoolExecutor) -> None:
        self._finish_tidying()
        now_s = monotonic_s(self.run.clock)
        if self._tidying is None and now_s >= self._tidy_at:
            self._tidy_at = now_s + _TIDY_EVERY_S
            self._tidying = pool.submit(self._tidy)

    def _finish_tidying(self) -> None:
        """Log an unexpected error; the next attempt follows in any case."""
        if self._tidying is None or not self._tidying.done():
            return
        if not self._tidying.cancelled() and (error := self._tidying.exception()) is not None:
            _log.error("tables not tidied", extra={"pipeline": self.run.name}, exc_info=error)
        self._tidying = None

    def waits(self, name: str) -> bool:
        """Return whether a dataset looks up a merged view that is being moved."""
        return not self.run.preparation.inputs[name].isdisjoint(self.migrations.views)

    def give_up(self, reason: str) -> None:
        """Prevent all further restarts."""
        for running in self.flows:
            running.give_up(Failure("PipelineError", reason))

    def end(self, is_stopped: Callable[[], bool]) -> None:
        """Stop everything, and write the last status, even if Spark no longer answers."""
        try:
            self._stop_flows()
            self._close("failed" if self.failures() else "stopped")
        except errors_of_spark() as error:
            # The signal that stops this process may have ended Spark and its queries before.
            if not is_stopped():
                log = str(self.run.state.spark_log)
                fields = {"pipeline": self.run.name, "error": short_text(error), "log": log}
                _log.error("pipeline not ended in order, Spark is lost", extra=fields)
            for running in self.flows:
                running.query = None
            self._close("stopped" if is_stopped() and not self.failures() else "failed")

    def _stop_flows(self) -> None:
        """Stop each flow between two batches, if the current one ends soon.

        Batches of a busy or real-time flow follow without a pause: when one has ended the next has
        just begun, and little is lost. The next run repeats a batch that was cut off, safely by its
        token.
        """
        deadline = monotonic_s(self.run.clock) + _STOP_S_MAX
        active = [(one, one.last_batch) for one in self.flows if one.is_active]
        while active:
            is_late = monotonic_s(self.run.clock) >= deadline
            for running, batch in active:
                is_next_begun = running.last_batch > batch
                if is_late or is_next_begun or not running.is_busy:
                    running.stop()
            active = [(one, batch) for one, batch in active if one.is_active]
            self.run.clock.sleep(TICK_S)

    def _close(self, state: str) -> None:
        """Start nothing more, and write the last status."""
        for view in self.views:
            if view.future is not None:
                view.future.cancel()
        self._finish_tidying()
        if self._tidying is not None:
            self._tidying.cancel()
        self.write_status(state)

    def _schedule(self, running: RunningView, pool: ThreadPoolExecutor) -> None:
        if running.future is not None:
            if not running.future.done():
                return
            running.finish()
        moment = utc_now(self.run.clock)
        due = running.timeline.next_at(running.view.last_run(), moment)
        running.next_at = running.retries.delayed(due, moment, monotonic_s(self.run.clock))
        if running.next_at <= moment:
            running.next_at = None
            running.future = pool.submit(running.refresh)

    # Both ways.

    def _judge_freshness(self, since: dt.datetime | None) -> None:
        """Find stale tables; a flow into a table that must not be stale has failed."""
        if not self.freshness.expected:
            return
        since_ms = None if since is None else round(since.timestamp() * 1000)
        self.freshness.check(self._newest(), self.run.clock.now_ms(), since_ms)
        for running in self.flows:
            text = self.freshness.failed.get(running.flow.target)
            if text is not None and not running.has_failed:
                running.give_up(Failure(ExpectationFailed.__name__, text))

    def _newest(self) -> dict[str, dict[str, int]]:
        """Return the newest times in the reports of tables that must be fresh."""
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
        """Join small files of tables with many commits since the last time.

        Not while merged views move: the commits that they need are not known yet.
        """
        if self.migrations.views:
            return
        tables = {name: self.run.generations.of(name) for name in self.run.preparation.made}
        own = (self.run.folders.of(one.flow) for one in self.flows)
        self._tables.check(tables, followers(self.run.lake, own))

    def failures(self) -> list[str]:
        """Return an error for each flow and view that has failed."""
        log = self.run.state.spark_log
        flows = [
            f"{running.flow.location}: the flow {running.flow.name} failed:"
            f" {running.failure.described(log)}"
            for running in self.flows
            if running.has_failed and running.failure is not None
        ]
        views = [
            f"{running.view.view.location}: {running.view.name} was not refreshed:"
            f" {running.failure}"
            for running in self.views
            if running.failure is not None
        ]
        stale = [
            f"{running.view.view.location}: {text}"
            for running in self.views
            if (text := self.freshness.failed.get(running.view.name))
        ]
        return flows + views + stale

    def write_status(self, state: str) -> None:
        """Write the status; a replay under construction has none.

        A failure to write does not stop the rows.
        """
        if self.run.generations.chosen:
            return
        self.status = self.status_now(state)
        write = partial(self.run.state.write_status, self.status)
        if error := self._status_writing.attempt(write):
            _log.warning(
                "pipeline status not written",
                extra={"pipeline": self.run.name, "error": str(error)},
            )

    def status_now(self, state: str) -> PipelineStatus:
        settings, stale, clock = self.run.pipeline.settings, self.freshness.stale, self.run.clock
        has_run_ended = state in _OVER
        moment, now_s = utc_now(clock), monotonic_s(clock)
        is_by_the_clock = self.mode == "continuous" and not has_run_ended
        return PipelineStatus(
            pipeline=settings.name,
            state=state,
            lake=settings.lake,
            version=settings.version,
            fingerprint=self.run.pipeline.fingerprint,
            architecture=settings.architecture.value,
            mode=self.mode,
            started_at=moment_text(self.started_at),
            updated_at=moment_text(moment),
            flows=tuple(
                flow_status(
                    one,
                    self._flow_state(one, has_run_ended=has_run_ended),
                    one.next_at(moment, now_s) if is_by_the_clock else None,
                    stale.get(one.flow.target),
                )
                for one in self.flows
            ),
            views=tuple(
                view_status(one, stale.get(one.view.name), has_run_ended=has_run_ended)
                for one in self.views
            ),
            moving=tuple(sorted(self.migrations.views)),
        )

    def _flow_state(self, running: RunningFlow, *, has_run_ended: bool) -> str:
        """Return the state of a flow; after the end of the run nothing is retried."""
        if running.is_active:
            return "running"
        if running.has_failed:
            return "failed"
        if has_run_ended:
            return "ended"
        if running.failure is not None:
            return "retrying"
        return "waiting" if self.waits(running.flow.target) else "ended"
