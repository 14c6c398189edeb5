"""A view that is computed whole while its pipeline runs: on schedule, and again if it failed."""

import datetime as dt
import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.pipelines.running.errors import expected_errors
from headrace.pipelines.running.restarts import failure_of
from headrace.pipelines.running.schedules import Retries, Timeline
from headrace.pipelines.running.views import ComputedView

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningView:
    """A view that is computed whole, and when that was and will be."""

    view: ComputedView
    timeline: Timeline
    future: "Future[bool] | None" = None
    failure: str | None = None
    next_at: dt.datetime | None = None
    """None while it is being computed, or waits for those before it."""
    retries: Retries = field(default_factory=Retries)

    def refresh(self) -> bool:
        """Compute it if anything that it reads has changed; a failure is noted."""
        try:
            self.failure = None
            return self.view.refresh()
        except expected_errors() as error:
            self.failure = self.told(error)
            _log.error("%s was not refreshed: %s", self.view.name, self.failure)
            return False

    def settle(self) -> None:
        """Take note of how a computation has ended."""
        assert self.future is not None, "there is one to settle"
        error = self.future.exception()
        if error is not None:
            self.failure = self.told(error)
            _log.error("%s was not refreshed", self.view.name, exc_info=error)
        self.future = None
        self.retries.note(has_failed=self.failure is not None, now_s=time.monotonic())

    def told(self, error: BaseException) -> str:
        """Why it was not refreshed, in one line."""
        failure = failure_of(f"{type(error).__module__}.{type(error).__name__}: {error}")
        return failure.told(self.view.run.state.spark_log)
