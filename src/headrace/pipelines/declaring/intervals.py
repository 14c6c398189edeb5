"""Intervals and schedules as text: `10 seconds`, `1 hour`, `*/15 * * * *`."""

import datetime as dt
import re
from dataclasses import dataclass

from headrace.pipelines.problems import PipelineError

_UNITS_S = {
    "millisecond": 0.001,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
}
_INTERVAL = re.compile(r"(?:interval\s+)?'?(\d+(?:\.\d+)?)'?\s+([a-z]+?)s?", re.IGNORECASE)
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_DAYS_OF_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEARS_MAX = 9
"""`0 0 29 2 *` is due within eight years, around a year such as 2100; other lines sooner."""


@dataclass(frozen=True, slots=True)
class Every:
    """Due when an interval has passed since the last run."""

    seconds: float

    def next_after(self, last: dt.datetime) -> dt.datetime:
        return last + dt.timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Cron:
    """Due at the minutes of a line of five fields, in UTC; not at the start."""

    fields: tuple[frozenset[int], ...]
    is_either_day: bool
    """Cron's rule: with both kinds of days given, either is enough."""

    def next_after(self, last: dt.datetime) -> dt.datetime:
        """Return the first matching minute after the last run."""
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
        raise AssertionError(f"no matching day in {_YEARS_MAX} years, which parse_schedule rejects")

    def _is_day(self, at: dt.datetime) -> bool:
        if at.month not in self.fields[3]:
            return False
        is_day, is_weekday = at.day in self.fields[2], (at.isoweekday() % 7) in self.fields[4]
        return (is_day or is_weekday) if self.is_either_day else (is_day and is_weekday)


Schedule = Every | Cron


def seconds_of(text: str) -> float:
    """Return the length of `5 minutes` in seconds; the ValueError has an example."""
    found = _INTERVAL.fullmatch(text.strip())
    unit = _UNITS_S.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not an interval; write one like 10 seconds or 5 minutes")
    return float(found[1]) * unit


def is_cron(text: str) -> bool:
    """Return whether a schedule is a cron line: minute, hour, day, month, weekday."""
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(re.fullmatch(r"[\d*/,\-]+", one) for one in fields)


def schedule_complaint(text: str) -> str | None:
    """Return the problem of a refresh schedule, an interval or a cron line, or None."""
    try:
        schedule = parse_schedule(text)
    except PipelineError as error:
        return str(error) if is_cron(text) else f"{error}, or a cron line like */15 * * * *"
    if isinstance(schedule, Every) and schedule.seconds <= 0:
        return f"{text!r} is not a valid schedule; it must be longer than zero"
    return None


def parse_schedule(text: str) -> Schedule:
    """Parse an interval, or a cron line of five fields."""
    words = text.split()
    if len(words) != len(_FIELDS):
        try:
            return Every(seconds_of(text))
        except ValueError as error:
            raise PipelineError(str(error)) from error
    fields = tuple(_values(word, *field) for word, field in zip(words, _FIELDS, strict=True))
    weekdays = frozenset(day % 7 for day in fields[4])
    is_either_day = words[2] != "*" and words[4] != "*"
    if not is_either_day and not _are_days(fields[2], fields[3]):
        raise PipelineError(f"the cron line {text!r} never matches; name days that its months have")
    return Cron((*fields[:4], weekdays), is_either_day)


def _are_days(days: frozenset[int], months: frozenset[int]) -> bool:
    """Return whether one of the months has one of the days, in some year."""
    return any(min(days) <= _DAYS_OF_MONTHS[month - 1] for month in months)


def _values(word: str, name: str, least: int, most: int) -> frozenset[int]:
    """Return the numbers of one field of a cron line: `*`, `7`, `1-5`, `*/15`, lists."""
    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        try:
            low = least if span == "*" else int(first)
            high = most if span == "*" or (step and not last) else int(last or first)
            stride = int(step or 1)
        except ValueError:
            raise PipelineError(f"{word!r} is not a valid {name} of a cron line") from None
        if not (least <= low <= high <= most and stride > 0):
            raise PipelineError(f"{word!r} is not a {name} between {least} and {most}")
        found.update(range(low, high + 1, stride))
    return frozenset(found)
