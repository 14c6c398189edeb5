"""Limits of log lines."""

from headrace.runtime.log_limits import LogLimit


def test_lines_beyond_the_maximum_of_a_period_are_counted() -> None:
    now_s = 0.0
    limit = LogLimit(2, period_s=10.0, clock=lambda: now_s)
    assert [limit.allows() for _ in range(4)] == [True, True, False, False]
    now_s = 10.0
    assert limit.allows()
    assert limit.suppressed() == 2
    assert limit.suppressed() == 0
