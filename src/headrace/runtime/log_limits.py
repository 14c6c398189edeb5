"""A limit of log lines for events that a stranger can cause as often as they like."""

from collections.abc import Callable
from time import monotonic


class LogLimit:
    """Allows some lines of one event per period, and counts the others."""

    def __init__(
        self,
        lines_max: int = 10,
        *,
        period_s: float = 60.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._lines_max = lines_max
        self._period_s = period_s
        self._clock = clock
        self._began_s = float("-inf")
        self._lines = 0
        self._suppressed = 0

    def allows(self) -> bool:
        """Return whether an event is logged now."""
        now_s = self._clock()
        if now_s - self._began_s >= self._period_s:
            self._began_s, self._lines = now_s, 0
        self._lines += 1
        if self._lines <= self._lines_max:
            return True
        self._suppressed += 1
        return False

    def suppressed(self) -> int:
        """Return the number of lines that were left out since the last call."""
        count, self._suppressed = self._suppressed, 0
        return count
