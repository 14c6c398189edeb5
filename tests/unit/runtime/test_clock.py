"""The machine's clocks."""

import time

from headrace.runtime.clock import SystemClock


def test_now_is_the_time_of_day_in_milliseconds() -> None:
    assert abs(SystemClock().now_ms() - time.time() * 1000) < 5_000


def test_monotonic_time_does_not_go_back() -> None:
    clock = SystemClock()
    assert clock.monotonic_ms() <= clock.monotonic_ms()
