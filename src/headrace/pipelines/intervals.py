"""Lengths of time as people and Spark write them: `10 seconds`, `5 minutes`, `1 hour`."""

import re

_UNITS_S = {
    "millisecond": 0.001,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
}
_INTERVAL = re.compile(r"(?:interval\s+)?'?(\d+(?:\.\d+)?)'?\s+([a-z]+?)s?", re.IGNORECASE)
CRON_FIELDS = 5


def seconds_of(text: str) -> float:
    """The length of `5 minutes` in seconds; ValueError says what one looks like."""
    found = _INTERVAL.fullmatch(text.strip())
    unit = _UNITS_S.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"{text!r} is no length of time; write one like 10 seconds or 5 minutes")
    return float(found[1]) * unit


def is_cron(text: str) -> bool:
    """Whether a schedule is a cron line: minute, hour, day, month, weekday."""
    fields = text.split()
    return len(fields) == CRON_FIELDS and all(re.fullmatch(r"[\d*/,\-]+", one) for one in fields)


def schedule_complaint(text: str) -> str | None:
    """What is wrong with a refresh schedule, an interval or a cron line, or None."""
    if is_cron(text):
        return None
    try:
        length = seconds_of(text)
    except ValueError as error:
        return f"{error}, or a cron line like */15 * * * *"
    return None if length > 0 else f"{text!r} is no schedule; it must be longer than nothing"
