"""Durations as Java writes them: ISO 8601 with days, hours, minutes and seconds."""

import re

_DAY_MS = 24 * 3_600_000
_UNITS_MS = (_DAY_MS, 3_600_000, 60_000)
_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?=[\d.])(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def duration_ms(text: str) -> int | None:
    """The milliseconds of a duration such as PT1H30M or P2DT0.5S; None if the text is invalid.

    Signs are invalid: no duration here is negative.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds, fraction = found.groups(default="0")
    whole = zip((days, hours, minutes), _UNITS_MS, strict=True)
    total_ms = sum(int(number) * unit_ms for number, unit_ms in whole)
    return total_ms + int(seconds) * 1_000 + int(fraction.ljust(3, "0")[:3])
