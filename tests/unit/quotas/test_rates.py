"""Unit tests of `headrace.quotas.rates`; the figures are those of Kafka's own classes."""

import pytest

from headrace.quotas.rates import Rate, SimpleRate, TokenBucket, Windows

WINDOWS = Windows(num=11, size_ms=1000)


def test_a_rate_that_begins_counts_the_complete_windows_before_it() -> None:
    rate = Rate(WINDOWS)
    rate.record(1000, now_ms=0)
    assert rate.measure(0) == pytest.approx(1000 / 10)


def test_a_rate_is_divided_by_the_time_since_its_oldest_window() -> None:
    rate = Rate(WINDOWS)
    for second in range(11):
        rate.record(100, now_ms=second * 1000)
    assert rate.window_ms(10_500) == 10_500
    assert rate.measure(10_500) == pytest.approx(1100 / 10.5)


def test_old_values_leave_a_rate() -> None:
    rate = Rate(WINDOWS)
    rate.record(1000, now_ms=0)
    assert rate.measure(11_000) == 0


def test_a_value_can_be_taken_back() -> None:
    rate = Rate(WINDOWS)
    rate.record(500, now_ms=0)
    rate.record(-500, now_ms=0)
    assert rate.measure(0) == 0


def test_a_window_is_at_least_one_millisecond_long() -> None:
    rate = Rate(Windows(num=1, size_ms=1000))
    rate.record(1, now_ms=7)
    assert rate.window_ms(7) == 1


def test_a_simple_rate_is_measured_over_at_least_one_window() -> None:
    rate = SimpleRate(WINDOWS)
    rate.record(1000, now_ms=0)
    assert rate.measure(100) == pytest.approx(1000)
    assert rate.measure(2000) == pytest.approx(500)


def test_a_bucket_begins_with_one_burst() -> None:
    assert TokenBucket(Windows(11, 1000)).tokens(limit=2, now_ms=5) == 22


def test_a_bucket_fills_at_its_rate_up_to_one_burst() -> None:
    bucket = TokenBucket(Windows(11, 1000))
    assert bucket.take(30, limit=2, now_ms=0) == -8
    assert bucket.tokens(limit=2, now_ms=4000) == 0
    assert bucket.tokens(limit=2, now_ms=60_000) == 22


def test_a_lower_limit_takes_tokens_beyond_its_burst() -> None:
    bucket = TokenBucket(Windows(10, 1000))
    assert bucket.tokens(limit=10, now_ms=0) == 100
    assert bucket.tokens(limit=1, now_ms=0) == 10
