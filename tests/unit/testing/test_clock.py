"""The clock that tests move by hand."""

from headrace.runtime.clock import Clock
from headrace.testing.clock import SimulatedClock


def test_time_passes_only_when_advanced() -> None:
    clock: Clock = SimulatedClock(now_ms=1000)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1000, 0)


def test_advancing_moves_both_clocks_and_jumping_only_one() -> None:
    clock = SimulatedClock(now_ms=1000)
    clock.advance(50)
    clock.jump(-500)
    assert (clock.now_ms(), clock.monotonic_ms()) == (550, 50)
