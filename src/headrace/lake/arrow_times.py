"""Arrow's times and dates as Python values and as text, for all years that a table may hold.

Python's calendar ends with the year 9999; those of Spark, Delta and Arrow cover 290,000 years. A
producer that sends milliseconds instead of seconds reaches them, and one such row must not break a
reader. Times beyond Python's calendar become text in Spark's form of ISO 8601:
`+58134-01-21T00:00:00Z`.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_EPOCH = dt.date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The Gregorian calendar repeats after this many years and days, weekdays included."""
_CYCLE_FROM = dt.date(2000, 1, 1).toordinal() - _EPOCH
_DAY_MICROS = 86_400_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_YEAR = re.compile(r"([+-]?)(\d{4,7})(?=-)")


def python_values(column: Any, *, maps_as_dicts: bool = False) -> list[Any]:
    """Return an array as `to_pylist` does, with times beyond Python's calendar as text."""
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict" if maps_as_dicts else None)
    except (OverflowError, ValueError):
        maps = dict if maps_as_dicts else list
        return [_python_value(one, maps) for one in column]
    return values


def python_rows(rows: Any) -> list[dict[str, Any]]:
    """Return the rows of a table or record batch as dicts of such values."""
    names = rows.schema.names
    columns = [python_values(column) for column in rows.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def date_text(days: int) -> str:
    """Format days since 1970-01-01 as a date; years beyond 9999 begin with a plus, as in Spark."""
    cycles, rest = divmod(days - _CYCLE_FROM, _CYCLE_DAYS)
    near = dt.date.fromordinal(_EPOCH + _CYCLE_FROM + rest)
    year = near.year + cycles * _CYCLE_YEARS
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{near.month:02}-{near.day:02}"


def time_text(micros: int, *, separator: str = "T", timespec: str = "auto") -> str:
    """Format microseconds since 1970 as a time without a zone."""
    days, rest = divmod(micros, _DAY_MICROS)
    clock = (dt.datetime.min + dt.timedelta(microseconds=rest)).time()
    return f"{date_text(days)}{separator}{clock.isoformat(timespec)}"


def days_of(text: str) -> int:
    """Parse a date to days since 1970-01-01."""
    near, cycles = _near(text)
    return dt.date.fromisoformat(near).toordinal() - _EPOCH + cycles * _CYCLE_DAYS


def micros_of(text: str) -> int:
    """Parse an ISO 8601 time to microseconds since 1970; a time without a zone is in UTC."""
    near, cycles = _near(text)
    moment = dt.datetime.fromisoformat(near)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return since // dt.timedelta(microseconds=1) + cycles * _CYCLE_DAYS * _DAY_MICROS


def _near(text: str) -> tuple[str, int]:
    """Shift a time by whole cycles into Python's calendar; return it and the number of cycles."""
    found = _YEAR.match(text)
    if found is None:
        return text, 0
    cycles, rest = divmod(int(found[1] + found[2]) - 2000, _CYCLE_YEARS)
    return f"{2000 + rest}{text[found.end() :]}", cycles


def _python_value(one: Any, maps: Callable[[Any], Any]) -> Any:
    """Convert one scalar part by part, with times beyond Python's calendar as text."""
    of = one.type
    if not one.is_valid:
        return None
    if pa.types.is_struct(of):
        return {name: _python_value(one[name], maps) for name in one}
    if pa.types.is_map(of):
        keys, items = (
            [_python_value(part, maps) for part in one.values.field(number)] for number in (0, 1)
        )
        return maps(zip(keys, items, strict=True))
    if pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of):
        return [_python_value(value, maps) for value in one.values]
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_date(of):
            return date_text(one.cast(pa.date32()).value)
        if not pa.types.is_timestamp(of):
            raise
    text = time_text(one.value * 1_000_000 // _PER_SECOND[of.unit])
    return f"{text}Z" if of.tz else text
