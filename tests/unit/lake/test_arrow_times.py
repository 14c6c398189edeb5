"""Times and dates beyond Python's calendar, in Python and as text."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.lake.arrow_times import (
    date_text,
    days_of,
    micros_of,
    python_rows,
    python_values,
    time_text,
)

FAR = 1_772_366_400_000 * 1_000_000
"""Milliseconds of March 2026 that were taken for seconds."""
FAR_DAY = FAR // 86_400_000_000
UTC = pa.timestamp("us", "UTC")


def far_dates(*days: int | None) -> pa.Array:
    return pa.array(days, pa.int32()).cast(pa.date32())


@given(days=st.integers(-90_000_000, 90_000_000))
def test_every_day_round_trips_through_its_text(days: int) -> None:
    assert days_of(date_text(days)) == days


@given(micros=st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_time_round_trips_through_its_text(micros: int) -> None:
    assert micros_of(time_text(micros)) == micros
    assert micros_of(f"{time_text(micros)}Z") == micros


@given(moment=st.datetimes())
def test_texts_of_python_s_own_years_are_python_s(moment: dt.datetime) -> None:
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert time_text(micros) == moment.isoformat()
    assert date_text(micros // 86_400_000_000) == moment.date().isoformat()


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (FAR_DAY, "+58134-01-21"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "+10000-01-01"),
        (-719_163, "0000-12-31"),
        (-719_529, "-0001-12-31"),
    ],
)
def test_years_beyond_four_digits_have_a_sign_as_in_spark(days: int, text: str) -> None:
    assert date_text(days) == text


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (
            pa.array([0, FAR, None], UTC),
            [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "+58134-01-21T00:00:00Z", None],
        ),
        (pa.array([FAR // 1000], pa.timestamp("ms")), ["+58134-01-21T00:00:00"]),
        (far_dates(0, FAR_DAY, None), [dt.date(1970, 1, 1), "+58134-01-21", None]),
        (
            pa.StructArray.from_arrays([far_dates(FAR_DAY), pa.array([7])], ["day", "n"]),
            [{"day": "+58134-01-21", "n": 7}],
        ),
        (pa.ListArray.from_arrays([0, 2], far_dates(FAR_DAY, None)), [["+58134-01-21", None]]),
        (
            pa.MapArray.from_arrays([0, 1], pa.array(["a"]), far_dates(FAR_DAY)),
            [[("a", "+58134-01-21")]],
        ),
    ],
)
def test_only_times_beyond_python_are_text(column: Any, expected: list[Any]) -> None:
    assert python_values(column) == expected
    assert python_values(pa.chunked_array([column])) == expected
    assert python_rows(pa.table({"x": column})) == [{"x": value} for value in expected]


def test_maps_may_be_dicts() -> None:
    far = pa.MapArray.from_arrays([0, 1], pa.array(["a"]), far_dates(FAR_DAY))
    near = pa.MapArray.from_arrays([0, 1], pa.array(["a"]), far_dates(0))
    assert python_values(far, maps_as_dicts=True) == [{"a": "+58134-01-21"}]
    assert python_values(near, maps_as_dicts=True) == [{"a": dt.date(1970, 1, 1)}]
