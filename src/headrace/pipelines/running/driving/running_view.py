"""A view that is computed whole: on schedule, and again after a failure."""

import datetime as dt
import logging
from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.pipelines.running.driving.restarts import failure_of
from headrace.pipelines.running.driving.schedules import Retries, Timeline, monotonic_s
from headrace.pipelines.running.errors import expected_errors
from headrace.pipelines.running.views.computed import ComputedView

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningView:
    """A view that is computed whole, with its schedule and last failure."""

    view: ComputedView
    timeline: Timeline
    future: "Future[bool] | None" = None
    failure: str | None = None
    next_at: dt.datetime | None = None
    """None while it is being computed, or waits for its turn."""
    retries: Retries = field(default_factory=Retries)

    def refresh(self) -> bool:
        """Compute the view if an input has changed; a failure is recorded."""
        try:
            self.failure = None
            return self.view.refresh()
        except expected_errors() as error:
            self.failure = self.described(error)
            _log.error("view not refreshed", extra={"view": self.view.name, "error": self.failure})
            return False

    def finish(self) -> None:
        """Record the end of a computation."""
        assert self.future is not None, "a computation has begun"
        error = self.future.exception()
        if error is not None:
            self.failure = self.described(error)
            _log.error("view not refreshed", extra={"view": self.view.name}, exc_info=error)
        self.future = None
        now_s = monotonic_s(self.view.run.clock)
        self.retries.record(has_failed=self.failure is not None, now_s=now_s)

    def described(self, error: BaseException) -> str:
        """Return the failure as one line."""
        failure = failure_of(f"{type(error).__module__}.{type(error).__name__}: {error}")
        return failure.described(self.view.run.state.spark_log)
