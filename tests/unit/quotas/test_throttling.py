"""Unit tests of `headrace.quotas.throttling`."""

import pytest

from headrace.errors import ThrottlingQuotaExceeded
from headrace.quotas.rates import Rate, TokenBucket, Windows
from headrace.quotas.throttling import THROTTLE_MS_MAX, Limited, Mutations, throttle_ms

WINDOWS = Windows(num=11, size_ms=1000)


def test_a_rate_within_its_limit_is_not_throttled() -> None:
    assert throttle_ms(100, 100, window_ms=10_000) == 0


def test_the_throttle_time_brings_the_rate_back_to_the_limit() -> None:
    assert throttle_ms(150, 100, window_ms=10_000) == 5000


def test_the_throttle_time_fits_into_an_answer() -> None:
    assert throttle_ms(1e18, 1, window_ms=10_000) == THROTTLE_MS_MAX
    assert throttle_ms(1, 0, window_ms=10_000) == THROTTLE_MS_MAX


def test_a_value_beyond_the_burst_is_throttled() -> None:
    limited = Limited(Rate(WINDOWS), limit=100)
    assert limited.record(limited.burst, now_ms=0) == 0
    assert limited.record(500, now_ms=0) == 5000


def test_the_throttle_time_of_requests_is_bounded() -> None:
    limited = Limited(Rate(WINDOWS), limit=1, delay_max_ms=1000)
    assert limited.record(1_000_000, now_ms=0) == 1000


def test_a_new_limit_applies_to_what_was_counted_before() -> None:
    limited = Limited(Rate(WINDOWS), limit=1000)
    assert limited.record(2000, now_ms=0) == 0
    limited.limit = 100
    assert limited.delay_ms(0) == 10_000


def test_a_value_that_is_not_sent_is_taken_back() -> None:
    limited = Limited(Rate(WINDOWS), limit=100)
    limited.record(5000, now_ms=0)
    limited.undo(5000, now_ms=0)
    assert not limited.is_exceeded(0)


def test_strict_mutations_are_rejected_while_the_bucket_is_below_zero() -> None:
    bucket = TokenBucket(WINDOWS)
    first = Mutations(bucket, 1, is_strict=True)
    first.record(20, now_ms=0)  # One request may exceed the burst.
    second = Mutations(bucket, 1, is_strict=True)
    with pytest.raises(ThrottlingQuotaExceeded):
        second.record(1, now_ms=0)
    assert (first.throttle_ms(0), second.throttle_ms(0)) == (0, 9000)


def test_permissive_mutations_are_accepted_and_throttled() -> None:
    mutations = Mutations(TokenBucket(WINDOWS), 1, is_strict=False)
    mutations.record(20, now_ms=0)
    assert mutations.throttle_ms(4000) == 5000
    assert mutations.throttle_ms(60_000) == 0
