"""Compiled converters of ISO 8601 dates and times, to days and microseconds since 1970."""

# Compiled code compares with each of two constants; a tuple of them would be a loop.
# ruff: noqa: SIM109

from typing import Any

import numpy as np

from headrace.spark.decoding.columns.failures import TOO_FAR, UNFIT
from headrace.spark.decoding.columns.memory import byte_at, compiled
from headrace.spark.decoding.columns.number_texts import integer_of, note
from headrace.spark.decoding.columns.spans import INTEGER, NULL, STRING

MICROS = 1_000_000
DAY_SECONDS = 86_400
SECONDS_MIN, SECONDS_MAX = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999; numbers beyond them are in a smaller unit."""

MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

PLUS, MINUS, POINT, ZERO, NINE, COLON = 43, 45, 46, 48, 57, 58
UPPER_T, LOWER_T, UPPER_Z, LOWER_Z, SPACE = 84, 116, 90, 122, 32


@compiled
def two_digits(data: int, at: int, end: int) -> int:
    """Parse two digits; return -1 for anything else."""
    if at + 2 > end:
        return -1
    tens = byte_at(data, at) - ZERO
    ones = byte_at(data, at + 1) - ZERO
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return -1
    return tens * 10 + ones


@compiled
def days_of(year: int, month: int, day: int) -> int:
    """Return days since 1970 in the proleptic Gregorian calendar, or -1 << 62 for invalid dates."""
    if month < 1 or month > 12 or day < 1:
        return -(1 << 62)
    last = MONTH_DAYS[month]
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        last = 29
    if day > last:
        return -(1 << 62)
    # Years that begin in March have their leap day at the end.
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@compiled
def date_of(data: int, at: int, end: int) -> tuple[int, int]:
    """Parse YYYY-MM-DD: return its day, or -1 << 62 if invalid, and the next position."""
    none = -(1 << 62)
    if at + 10 > end or byte_at(data, at + 4) != MINUS or byte_at(data, at + 7) != MINUS:
        return none, at
    century = two_digits(data, at, end)
    years = two_digits(data, at + 2, end)
    month = two_digits(data, at + 5, end)
    day = two_digits(data, at + 8, end)
    if century < 0 or years < 0:
        return none, at
    return days_of(century * 100 + years, month, day), at + 10


@compiled
def clock_of(data: int, at: int, end: int) -> tuple[int, int]:
    """Parse HH:MM[:SS[.fraction]]: return microseconds of the day or -1, and the next position."""
    hour = two_digits(data, at, end)
    if hour < 0 or hour > 23 or at + 5 > end or byte_at(data, at + 2) != COLON:
        return -1, at
    minute = two_digits(data, at + 3, end)
    if minute < 0 or minute > 59:
        return -1, at
    micros = (hour * 3600 + minute * 60) * MICROS
    at += 5
    if at >= end or byte_at(data, at) != COLON:
        return micros, at
    second = two_digits(data, at + 1, end)
    if second < 0 or second > 59:
        return -1, at
    micros += second * MICROS
    at += 3
    if at < end and byte_at(data, at) == POINT:
        at += 1
        unit = 100_000
        begin = at
        while at < end and ZERO <= byte_at(data, at) <= NINE:
            micros += (byte_at(data, at) - ZERO) * unit
            unit //= 10
            at += 1
        if at == begin or at - begin > 9:
            return -1, at
    return micros, at


@compiled
def zone_of(data: int, at: int, end: int) -> int:
    """Parse Z, +02:00, +0200 or +02: return the seconds to subtract, or 1 << 62 if invalid."""
    none = 1 << 62
    byte = byte_at(data, at)
    if byte == UPPER_Z or byte == LOWER_Z:
        return 0 if at + 1 == end else none
    if byte != PLUS and byte != MINUS:
        return none
    hours = two_digits(data, at + 1, end)
    minutes = 0
    at += 3
    if at < end:
        if byte_at(data, at) == COLON:
            at += 1
        minutes = two_digits(data, at, end)
        at += 2
    if at != end or hours < 0 or hours > 18 or minutes < 0 or minutes > 59:
        return none
    seconds = hours * 3600 + minutes * 60
    return seconds if byte == PLUS else -seconds


@compiled
def micros_of(data: int, at: int, end: int, has_zone: bool) -> tuple[int, bool]:
    """Return microseconds since 1970 (in UTC without a zone), and whether the text is valid."""
    days, at = date_of(data, at, end)
    if days == -(1 << 62):
        return 0, False
    micros = days * DAY_SECONDS * MICROS
    if at == end:
        return micros, True
    if byte_at(data, at) != UPPER_T and byte_at(data, at) != LOWER_T and byte_at(data, at) != SPACE:
        return 0, False
    clock, at = clock_of(data, at + 1, end)
    if clock < 0:
        return 0, False
    micros += clock
    if at == end:
        return micros, True
    if not has_zone:
        return 0, False
    seconds = zone_of(data, at, end)
    if seconds == 1 << 62:
        return 0, False
    return micros - seconds * MICROS, True


@compiled
def to_timestamps(spans: Any, values: Any, is_valid: Any, faults: Any, has_zone: bool) -> None:
    """Convert texts, and integers as seconds since 1970, as Spark does.

    Integers beyond the year 9999 are probably milliseconds. Spark accepts them; they are rejected
    here, so that the producer's mistake is noticed.
    """
    data, starts, ends, kinds, _ = spans
    for index in range(len(starts)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        value, fits = 0, False
        if kind == STRING:
            value, fits = micros_of(data, starts[index], ends[index], has_zone)
        elif kind == INTEGER and has_zone:
            value, fits = integer_of(data, starts[index], ends[index])
            if not fits or value < SECONDS_MIN or value > SECONDS_MAX:
                note(faults, TOO_FAR, spans, index)
                continue
            value *= MICROS
        if fits:
            values[index] = value
            is_valid[index] = 1
        else:
            note(faults, UNFIT, spans, index)


@compiled
def to_dates(spans: Any, values: Any, is_valid: Any, faults: Any) -> None:
    data, starts, ends, kinds, _ = spans
    for index in range(len(starts)):
        kind = kinds[index]
        if kind <= NULL:
            continue
        if kind == STRING:
            days, at = date_of(data, starts[index], ends[index])
            if days != -(1 << 62) and at == ends[index]:
                values[index] = days
                is_valid[index] = 1
                continue
        note(faults, UNFIT, spans, index)
