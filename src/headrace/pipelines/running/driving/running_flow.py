"""A flow while it runs: its current query and its failures."""

import datetime as dt
import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.lake.errors import LakeError
from headrace.lake.tables import Table
from headrace.pipelines.declaring.intervals import seconds_of
from headrace.pipelines.model import Flow, trigger_of
from headrace.pipelines.running.driving.restarts import Failure, Restarts, failure_of
from headrace.pipelines.running.driving.schedules import monotonic_s, next_trigger
from headrace.pipelines.running.errors import expected_errors
from headrace.pipelines.running.flows.query import FlowQuery
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.reports import Report

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)

Lags = dict[str, dict[str, int]]
"""By topic and partition."""


@dataclass(slots=True)
class RunningFlow:
    """Starts a flow, notices its end, and schedules its restart."""

    run: PipelineRun
    flow: Flow
    query: "StreamingQuery | None" = None
    restarts: Restarts = field(default_factory=Restarts)
    failure: Failure | None = None
    """The reason why the flow is not running; None once a restarted query has made progress."""
    is_renewal_due: bool = False
    """True if the query is to be restarted when no batch is under way."""
    is_over: bool = False
    """True if the flow is at its end, or was given up."""
    restarted: int = 0
    """The number of restarts after a failure."""
    is_once: bool = False
    """True if the flow runs to the end of the available records."""
    _tables: dict[str, Table] = field(default_factory=dict)
    """The tables that the flow reads, opened for their lag."""

    @property
    def is_active(self) -> bool:
        return self.query is not None and self.query.isActive

    @property
    def has_failed(self) -> bool:
        return self.is_over and self.failure is not None

    @property
    def is_due(self) -> bool:
        """Return whether the flow may be started now."""
        return not self.is_over and monotonic_s(self.run.clock) >= self.restarts.not_before

    def start(self, *, is_once: bool) -> None:
        """Start a query; an error of its planning counts as a failure of its run."""
        self.is_once = is_once
        try:
            self.query = FlowQuery(self.run, self.flow).start(is_once=is_once)
        except expected_errors() as error:
            self.query = None
            name = f"{type(error).__module__}.{type(error).__name__}"
            self._record_failure(failure_of(f"{name}: {error}"))

    def poll(self) -> None:
        """Record the end of a query, or the recovery of a restarted one."""
        if self.query is None:
            return
        if self.query.isActive:
            if self.failure is not None and self._progress is not None:
                self.failure = None
                _log.info("flow runs again", extra={"flow": self.flow.name})
            return
        error = self.query.exception()
        self.query = None
        if error is None:
            self.failure = None
            self.is_over = True
        else:
            self._record_failure(failure_of(str(error)))

    @property
    def is_busy(self) -> bool:
        """Return whether a stop would cut off a batch, which the next run would repeat."""
        if self.query is None or not self.query.isActive:
            return False
        status = self.query.status
        # A trigger is active also while the next batch is planned, most of an idle query's time.
        return bool(status["isTriggerActive"] and status["isDataAvailable"])

    @property
    def last_batch(self) -> int:
        """Return the number of the last batch of this run; -1 if there was none."""
        progress = self._progress
        return -1 if progress is None else int(progress["batchId"])

    def next_at(self, now: dt.datetime, now_s: float) -> dt.datetime | None:
        """Return the time of a continuous query's next batch, or of its restart.

        `now_s` is the same moment by the monotonic clock, which restarts use.
        """
        if self.is_active:
            if self.flow.is_once or self.flow.realtime is not None:
                return None
            return next_trigger(seconds_of(trigger_of(self.flow, self.run.pipeline.settings)), now)
        if self.is_over or self.failure is None:
            return None
        return now + dt.timedelta(seconds=max(0.0, self.restarts.not_before - now_s))

    def renew(self) -> None:
        """Restart a continuous query that waits for its trigger, if that is due.

        Spark waits until a time of day; a clock that is set back prolongs the wait.
        """
        if self.is_renewal_due and self.is_active and not self.is_busy:
            self.is_renewal_due = False
            self.stop()
            self.start(is_once=False)

    def give_up(self, failure: Failure) -> None:
        """End the flow for good, for a reason outside of its query."""
        self.stop()
        self.query = None
        self.failure = failure
        self.is_over = True
        _log.error("flow failed", extra={"flow": self.flow.name, "error": failure.text})

    def stop(self) -> None:
        if self.query is not None and self.query.isActive:
            self.query.stop()

    def report(self) -> Report:
        return Report.read(self.run.folders.of(self.flow).report)

    def lags(self) -> Lags:
        """Return the number of unread records of each partition of the flow's topics."""
        progress = self._progress
        return {} if progress is None else lags_of(progress)

    def lag(self) -> int | None:
        """Return the number of unread records and rows of the flow's inputs; None if unknown."""
        progress = self._progress
        if progress is None or self.is_once:
            return None
        found = [sum(partitions.values()) for partitions in lags_of(progress).values()]
        for source in progress["sources"]:
            rows = self._rows_behind(_offsets(source["endOffset"]))
            found += [] if rows is None else [rows]
        return sum(found) if found else None

    def _rows_behind(self, end: dict[str, Any]) -> int | None:
        """Return the rows of a table after an offset; None for a topic, or during a snapshot."""
        name = end.get("table")
        if not isinstance(name, str) or end.get("snapshot") is not None:
            return None
        try:
            if name not in self._tables:
                self._tables[name] = self.run.generations.table(name)
            table = self._tables[name]
            if table.table_id != end.get("id"):
                return None
            files = table.added(int(end["version"]), table.version)
        except LakeError:
            return None  # The query reports the same error.
        return sum(max(file.rows, 0) for file in files)

    @property
    def _progress(self) -> Any:
        """Spark's report on the last batch; None if there was none."""
        return None if self.query is None else self.query.lastProgress

    def _record_failure(self, failure: Failure) -> None:
        self.failure = failure
        batch, now_s = self.report().batch, monotonic_s(self.run.clock)
        is_due_again = self.restarts.on_failure(failure, batch, now_s, is_once=self.is_once)
        self.is_over = not is_due_again
        fields = {"flow": self.flow.name, "error": failure.text}
        if not is_due_again:
            _log.error("flow failed", extra={**fields, "advice": self._advice()})
            return
        self.restarted += 1
        attempts_max = failure.attempts_max(is_once=self.is_once)
        limit = "until it succeeds" if attempts_max is None else str(attempts_max - 1)
        fields |= {"attempt": str(self.restarts.failures), "attempts_max": limit}
        wait_s = round(self.restarts.not_before - now_s)
        _log.warning("flow failed, restart scheduled", extra={**fields, "wait_s": wait_s})

    def _advice(self) -> str:
        """Return advice if the failure's own text has none."""
        assert self.failure is not None, "advice is about a failure"
        is_final = self.failure.is_final or self.is_once
        return "" if is_final else "it is not restarted; after a fix, start the run again"


def lags_of(progress: Any) -> Lags:
    """Return the records behind the end of each partition, from the sources' own reports."""
    behind: Lags = {}
    for source in progress["sources"]:
        end, latest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        for topic, partitions in latest.items():
            if isinstance(partitions, dict):
                done = end.get(topic, {})
                behind.setdefault(topic, {}).update(
                    (partition, max(0, int(to) - int(done.get(partition, 0))))
                    for partition, to in partitions.items()
                )
    return behind


def _offsets(value: Any) -> dict[str, Any]:
    """Return the offsets of a source: an object, its text, or nothing yet."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
