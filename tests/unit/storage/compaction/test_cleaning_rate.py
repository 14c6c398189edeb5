"""The rate limit of compaction."""

from headrace.storage.compaction.cleaning import Throttle


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_bytes_pass_at_the_rate_on_average() -> None:
    """RET-9: cleaning can be throttled."""
    time = Time()
    throttle = Throttle(1_000, time.monotonic, time.sleep)
    for _ in range(100):
        throttle.spend(100)
    assert 9.0 <= throttle.elapsed_s <= 10.1


def test_without_a_limit_cleaning_never_sleeps() -> None:
    time = Time()
    throttle = Throttle(1.7e308, time.monotonic, time.sleep)
    throttle.spend(1 << 40)
    assert throttle.elapsed_s == 0


def test_an_idle_time_earns_no_extra_rate() -> None:
    time = Time()
    throttle = Throttle(1_000, time.monotonic, time.sleep)
    time.now += 60
    throttle.spend(1)
    before = time.now
    throttle.spend(2_000)
    assert time.now - before >= 1.9
