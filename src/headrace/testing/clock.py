"""A clock that stands still until a test moves it."""


class SimulatedClock:
    """Both clocks of `runtime.clock.Clock` in one: they start apart and move together."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._passed_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._passed_ms

    def advance(self, duration_ms: int) -> None:
        """Let time pass."""
        assert duration_ms >= 0
        self._now_ms += duration_ms
        self._passed_ms += duration_ms

    def jump(self, duration_ms: int) -> None:
        """Set the time of day, also backwards, without time passing."""
        self._now_ms += duration_ms
