"""A clock that advances only when a test moves it."""


class SimulatedClock:
    """Both clocks of `runtime.clock.Clock`: they start at different values and advance together."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._passed_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._passed_ms

    def advance(self, duration_ms: int) -> None:
        """Advance both clocks."""
        assert duration_ms >= 0
        self._now_ms += duration_ms
        self._passed_ms += duration_ms

    def jump(self, duration_ms: int) -> None:
        """Set the time of day, also backwards; the monotonic clock does not change."""
        self._now_ms += duration_ms
