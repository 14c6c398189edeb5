"""When something is due: every so often, or by a cron line."""

import datetime as dt
from dataclasses import dataclass

from headrace.pipelines.intervals import seconds_of
from headrace.pipelines.problems import PipelineError

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_YEARS_MAX = 5
"""A line such as `0 0 29 2 *` is due within four years; one that is not, never."""
_FIRST_WAIT_S, _WAIT_S_MAX = 10.0, 600.0
_DOUBLINGS_MAX = 6
_SET_BACK_S_MIN = 2.0


@dataclass(frozen=True, slots=True)
class Every:
    """Due when so much time has passed since the last run."""

    seconds: float

    def next_after(self, last: dt.datetime) -> dt.datetime:
        return last + dt.timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Cron:
    """Due at the minutes that a line of five fields names, in UTC; not at the start."""

    fields: tuple[frozenset[int], ...]
    is_either_day: bool
    """Cron's old rule: with both kinds of days given, either is enough."""

    def next_after(self, last: dt.datetime) -> dt.datetime:
        """The first matching minute after the last run."""
        at = last.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
        end = at.replace(year=at.year + _YEARS_MAX, day=min(at.day, 28))
        while at < end:
            if not self._is_day(at):
                at = (at + dt.timedelta(days=1)).replace(hour=0, minute=0)
            elif at.hour not in self.fields[1]:
                at = (at + dt.timedelta(hours=1)).replace(minute=0)
            elif at.minute not in self.fields[0]:
                at += dt.timedelta(minutes=1)
            else:
                return at
        raise PipelineError("this cron line never comes true; name days that its months have")

    def _is_day(self, at: dt.datetime) -> bool:
        if at.month not in self.fields[3]:
            return False
        is_day, is_weekday = at.day in self.fields[2], (at.isoweekday() % 7) in self.fields[4]
        return (is_day or is_weekday) if self.is_either_day else (is_day and is_weekday)


Schedule = Every | Cron


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


def parse_schedule(text: str) -> Schedule:
    """An interval, or a cron line of five fields."""
    words = text.split()
    if len(words) != len(_FIELDS):
        try:
            return Every(seconds_of(text))
        except ValueError as error:
            raise PipelineError(str(error)) from error
    fields = tuple(_values(word, *field) for word, field in zip(words, _FIELDS, strict=True))
    weekdays = frozenset(day % 7 for day in fields[4])
    return Cron((*fields[:4], weekdays), words[2] != "*" and words[4] != "*")


def _values(word: str, name: str, least: int, most: int) -> frozenset[int]:
    """The numbers that one field of a cron line stands for: `*`, `7`, `1-5`, `*/15`, lists."""
    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        try:
            low = least if span == "*" else int(first)
            high = most if span == "*" or (step and not last) else int(last or first)
            stride = int(step or 1)
        except ValueError:
            raise PipelineError(f"{word!r} is no {name} of a cron line") from None
        if not (least <= low <= high <= most and stride > 0):
            raise PipelineError(f"{word!r} is no {name} between {least} and {most}")
        found.update(range(low, high + 1, stride))
    return frozenset(found)
