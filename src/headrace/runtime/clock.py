"""The time of day and the time that passed, as an object so that tests can bring their own."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the rest of the code knows of time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as record timestamps count them; may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back, so it is what durations are made of."""
        ...


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
