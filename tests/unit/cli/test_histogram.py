"""Latencies in buckets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.histogram import Histogram, bucket_of, top_of

values = st.integers(0, 10**9)


def histogram(*given_values: int) -> Histogram:
    counted = Histogram()
    for value in given_values:
        counted.add(value)
    return counted


@given(value=values)
def test_a_bucket_is_never_wider_than_its_promise(value: int) -> None:
    top = top_of(bucket_of(value))
    assert value <= top <= value * (1 + 1 / 64)


@given(first=values, second=values)
def test_buckets_are_ordered_as_values_are(first: int, second: int) -> None:
    small, large = sorted((first, second))
    assert bucket_of(small) <= bucket_of(large)


@given(counted=st.lists(values, min_size=1), percent=st.floats(1, 100))
def test_a_percentile_has_its_share_below_it(counted: list[int], percent: float) -> None:
    bound = histogram(*counted).percentile_us(percent)
    assert sum(value <= bound for value in counted) >= len(counted) * percent / 100 - 1e-9
    assert bound <= max(counted)


def test_merging_is_counting_everything_once() -> None:
    merged = histogram(1, 2, 3000)
    merged.merge(histogram(4, 100_000))
    assert merged == histogram(1, 2, 3000, 4, 100_000)


def test_a_summary_is_in_milliseconds() -> None:
    summary = histogram(*range(1000, 101_000, 1000)).summary()
    assert summary is not None
    assert summary.p50 == pytest.approx(50, rel=1 / 64)
    assert summary.p99 == pytest.approx(99, rel=1 / 64)
    assert (summary.max, summary.samples) == (100, 100)


def test_nothing_counted_has_no_summary() -> None:
    assert Histogram().summary() is None


def test_a_negative_latency_counts_as_zero() -> None:
    assert histogram(-5).max_us == 0
