"""Histograms of durations: exact counts, and quantiles close enough."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.durations import Durations


def test_quantiles_are_within_a_fifth() -> None:
    random_source = random.Random(1)
    values = sorted(random_source.lognormvariate(13, 1) for _ in range(50_000))
    durations = Durations()
    for value in values:
        durations.add_ns(int(value))
    for quantile in (0.5, 0.95, 0.99):
        true_ms = values[int(quantile * len(values))] / 1e6
        (read_ms,) = durations.quantiles_ms((quantile,))
        assert read_ms == pytest.approx(true_ms, rel=0.2)


@given(st.lists(st.integers(0, 10**15), max_size=50))
def test_any_duration_is_counted(values: list[int]) -> None:
    durations = Durations()
    for value in values:
        durations.add_ns(value)
    assert durations.count == len(values)
    assert durations.sum_ms == pytest.approx(sum(values) / 1e6, abs=0.0011 * len(values) + 1e-9)
    low, high = durations.quantiles_ms((0.5, 1.0))
    assert low <= high


def test_without_durations_quantiles_are_zero() -> None:
    assert Durations().quantiles_ms((0.5, 0.999)) == [0.0, 0.0]
