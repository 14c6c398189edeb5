"""Schedules that tolerate changes of the clock and failed attempts."""

import datetime as dt
from dataclasses import dataclass

from headrace.pipelines.declaring.intervals import Every, Schedule
from headrace.runtime.clock import Clock

_FIRST_WAIT_S, _WAIT_S_MAX = 10.0, 600.0
_DOUBLINGS_MAX = 6
_SET_BACK_S_MIN = 2.0


def utc_now(clock: Clock) -> dt.datetime:
    return dt.datetime.fromtimestamp(clock.now_ms() / 1000, dt.UTC)


def monotonic_s(clock: Clock) -> float:
    return clock.monotonic_ms() / 1000


@dataclass(slots=True)
class Timeline:
    """The next due time by a clock that may be set while waiting.

    Without a last run, or with one in the future, the schedule starts at the moment when this was
    noticed. The moment is stored: counted from the present at each check, no time would be due.
    """

    schedule: Schedule
    since: dt.datetime | None = None

    def next_at(self, last: dt.datetime | None, now: dt.datetime) -> dt.datetime:
        if last is None and isinstance(self.schedule, Every):
            return now
        if last is not None and last <= now:
            self.since = None
            return self.schedule.next_after(last)
        if self.since is None or self.since > now:
            self.since = now
        return self.schedule.next_after(self.since)


def next_trigger(interval_s: float, now: dt.datetime) -> dt.datetime | None:
    """Return the next trigger of a waiting query; None if it never waits.

    Spark triggers at the multiples of the interval since 1970, whatever the start of the query.
    """
    interval_ms = round(interval_s * 1000)
    if interval_ms == 0:
        return None
    now_ms = int(now.timestamp() * 1000)
    due_ms = (now_ms // interval_ms + 1) * interval_ms
    return dt.datetime.fromtimestamp(due_ms / 1000, dt.UTC)


@dataclass(slots=True)
class Retries:
    """The pause after failures: longer each time, up to ten minutes, by the monotonic clock."""

    failures: int = 0
    not_before: float = 0.0

    def record(self, *, has_failed: bool, now_s: float) -> None:
        """Record the end of an attempt."""
        if not has_failed:
            self.failures, self.not_before = 0, 0.0
            return
        doubled = _FIRST_WAIT_S * 2 ** min(self.failures, _DOUBLINGS_MAX)
        self.not_before = now_s + min(doubled, _WAIT_S_MAX)
        self.failures += 1

    def delayed(self, due: dt.datetime, now: dt.datetime, now_s: float) -> dt.datetime:
        """Return the time for an action that is due; never in the past."""
        return max(due, now + dt.timedelta(seconds=max(0.0, self.not_before - now_s)))


@dataclass(slots=True)
class SetBack:
    """Detects a time of day that was set back, by the monotonic clock.

    Small steps are ignored, because time synchronization makes them continually.
    """

    ahead_s: float | None = None
    """The largest lead of the time of day over the monotonic clock."""

    def is_noticed(self, time_s: float, monotonic_s: float) -> bool:
        """Return whether the time of day was set back since the last check."""
        ahead_s = time_s - monotonic_s
        was_ahead_s = ahead_s if self.ahead_s is None else self.ahead_s
        is_back = ahead_s < was_ahead_s - _SET_BACK_S_MIN
        self.ahead_s = ahead_s if is_back else max(ahead_s, was_ahead_s)
        return is_back
