"""When something is due by its schedule, over clocks that are set and attempts that fail."""

import datetime as dt
from dataclasses import dataclass

from headrace.pipelines.intervals import Every, Schedule

_FIRST_WAIT_S, _WAIT_S_MAX = 10.0, 600.0
_DOUBLINGS_MAX = 6
_SET_BACK_S_MIN = 2.0


@dataclass(slots=True)
class Timeline:
    """When something is due next, by a clock that may be set while one waits.

    What was never run, or by its own account will be in the future, counts from the moment at
    which that was noticed. This moment is kept: a due time that is counted from now, at every
    look, never comes.
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
    """When a query that waits for its trigger looks for rows again; None if it never waits.

    Spark does so at the multiples of the interval since 1970, whenever the query was started.
    """
    interval_ms = round(interval_s * 1000)
    if interval_ms == 0:
        return None
    now_ms = int(now.timestamp() * 1000)
    due_ms = (now_ms // interval_ms + 1) * interval_ms
    return dt.datetime.fromtimestamp(due_ms / 1000, dt.UTC)


@dataclass(slots=True)
class Retries:
    """How long to leave alone what has failed: longer each time, up to ten minutes.

    It is counted in seconds of a clock that nobody sets.
    """

    failures: int = 0
    not_before: float = 0.0

    def note(self, *, has_failed: bool, now_s: float) -> None:
        """Take in how an attempt has ended."""
        if not has_failed:
            self.failures, self.not_before = 0, 0.0
            return
        doubled = _FIRST_WAIT_S * 2 ** min(self.failures, _DOUBLINGS_MAX)
        self.not_before = now_s + min(doubled, _WAIT_S_MAX)
        self.failures += 1

    def put_off(self, due: dt.datetime, now: dt.datetime, now_s: float) -> dt.datetime:
        """When to do what is due at some time; never in the past."""
        return max(due, now + dt.timedelta(seconds=max(0.0, self.not_before - now_s)))


@dataclass(slots=True)
class SetBack:
    """Notices that the time of day was set back, by a clock that nobody sets.

    Small steps are left alone: they are made all the time, to keep clocks right.
    """

    ahead_s: float | None = None
    """How far the time of day was ahead of the other clock, at most."""

    def is_noticed(self, time_s: float, monotonic_s: float) -> bool:
        """Whether it was, since one last looked."""
        ahead_s = time_s - monotonic_s
        was_ahead_s = ahead_s if self.ahead_s is None else self.ahead_s
        is_back = ahead_s < was_ahead_s - _SET_BACK_S_MIN
        self.ahead_s = ahead_s if is_back else max(ahead_s, was_ahead_s)
        return is_back
