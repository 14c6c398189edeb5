"""Wall and monotonic time as an object, so that tests can replace it."""

import time
from typing import Protocol


class Clock(Protocol):
    """The source of time for the rest of the code."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as record timestamps count them; may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back, so durations use it."""
        ...


class WaitingClock(Clock, Protocol):
    """A clock on which a thread can wait; a test's clock advances instead."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
