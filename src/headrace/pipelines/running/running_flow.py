"""A flow while it runs: the query of this moment, and what has gone wrong with it so far."""

import datetime as dt
import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.pipelines.intervals import seconds_of
from headrace.pipelines.model import Flow, trigger_of
from headrace.pipelines.running.errors import expected_errors
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.restarts import Failure, Restarts, failure_of
from headrace.pipelines.running.schedules import next_trigger

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)

Lags = dict[str, dict[str, int]]
"""By topic and partition."""


@dataclass(slots=True)
class RunningFlow:
    """Starts a flow, notices its end, and knows whether it may be started again."""

    run: PipelineRun
    flow: Flow
    query: "StreamingQuery | None" = None
    restarts: Restarts = field(default_factory=Restarts)
    failure: Failure | None = None
    """Why it is not running, or was not when it was last looked at."""
    is_renewal_due: bool = False
    """Whether its query is to be started anew, as soon as no batch is under way."""
    is_over: bool = False
    """Nothing more will come of it: it has come to its end, or was given up."""
    restarted: int = 0
    """How often it was to be started again after a failure."""
    is_once: bool = False
    """Whether it is run to the end of what is there."""

    @property
    def is_active(self) -> bool:
        return self.query is not None and self.query.isActive

    @property
    def has_failed(self) -> bool:
        return self.is_over and self.failure is not None

    @property
    def is_due(self) -> bool:
        """Whether it may be started now."""
        return not self.is_over and time.monotonic() >= self.restarts.not_before

    def start(self, *, is_once: bool) -> None:
        """Start a query; planning it may fail as its run may, and is treated alike."""
        self.is_once = is_once
        try:
            self.query = self.run.start(self.flow, is_once=is_once)
        except expected_errors() as error:
            self.query = None
            name = f"{type(error).__module__}.{type(error).__name__}"
            self._note(failure_of(f"{name}: {error}"))

    def settle(self) -> None:
        """Take note of a query that has ended, well or not."""
        if self.query is None or self.query.isActive:
            return
        error = self.query.exception()
        self.query = None
        if error is None:
            self.failure = None
            self.is_over = True
        else:
            self._note(failure_of(str(error)))

    @property
    def is_busy(self) -> bool:
        """Whether a batch is under way that would be cut off by a stop, and repeated later."""
        if self.query is None or not self.query.isActive:
            return False
        status = self.query.status
        # A trigger is active also while the next batch is planned, most of an idle query's time.
        return bool(status["isTriggerActive"] and status["isDataAvailable"])

    @property
    def last_batch(self) -> int:
        """The number of the last batch that was done in this run; -1 if none was."""
        progress = self._progress
        return -1 if progress is None else int(progress["batchId"])

    def next_at(self, now: dt.datetime, now_s: float) -> dt.datetime | None:
        """When a continuous query looks for rows again, or is started again after a failure.

        `now_s` is the same moment by the clock that nobody sets, which restarts wait by.
        """
        if self.is_active:
            if self.flow.is_once or self.flow.realtime is not None:
                return None
            return next_trigger(seconds_of(trigger_of(self.flow, self.run.pipeline.settings)), now)
        if self.is_over or self.failure is None:
            return None
        return now + dt.timedelta(seconds=max(0.0, self.restarts.not_before - now_s))

    def renew(self) -> None:
        """Let a continuous query that waits for its trigger choose anew what it waits for.

        Spark waits until a time of day; when that was set back, for as long as it was set back.
        """
        if self.is_renewal_due and self.is_active and not self.is_busy:
            self.is_renewal_due = False
            self.stop()
            self.start(is_once=False)

    def give_up(self, failure: Failure) -> None:
        """End it for good, for a reason that is not its query's."""
        self.stop()
        self.query = None
        self.failure = failure
        self.is_over = True
        _log.error("the flow %s failed: %s", self.flow.name, failure.text)

    def stop(self) -> None:
        if self.query is not None and self.query.isActive:
            self.query.stop()

    def report(self) -> Report:
        return Report.read(self.run.flow_state(self.flow).report)

    def lags(self) -> Lags:
        """How many records of each partition of its topics the flow has yet to read."""
        progress = self._progress
        return {} if progress is None else lags_of(progress)

    @property
    def _progress(self) -> Any:
        """What Spark says of the last batch; None if there was none."""
        return None if self.query is None else self.query.lastProgress

    def _note(self, failure: Failure) -> None:
        self.failure = failure
        batch, now_s = self.report().batch, time.monotonic()
        is_due_again = self.restarts.on_failure(failure, batch, now_s, is_once=self.is_once)
        self.is_over = not is_due_again
        if not is_due_again:
            _log.error("the flow %s failed: %s%s", self.flow.name, failure.text, self._advice())
            return
        self.restarted += 1
        attempts_max = failure.attempts_max(is_once=self.is_once)
        _log.warning(
            "the flow %s failed: %s; trying again in %.0f s (%s)",
            *(self.flow.name, failure.text, self.restarts.not_before - now_s),
            "until it succeeds"
            if attempts_max is None
            else f"{self.restarts.failures} of {attempts_max - 1}",
        )

    def _advice(self) -> str:
        """What is to be done where the failure's own words do not say it."""
        assert self.failure is not None, "there is one to advise about"
        is_said = self.failure.is_final or self.is_once
        return "" if is_said else "; it is not tried again: when that is mended, start the run anew"


def lags_of(progress: Any) -> Lags:
    """Records behind the end of each partition, from what the sources report of themselves."""
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
    """What a source says of where it stands: an object, its text, or nothing yet."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
