"""Many timers behind one timer of the event loop: sessions, rebalances, locks of records."""

import asyncio
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from headrace.coordination.timers import TimerQueue

if TYPE_CHECKING:
    from headrace.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)


class LoopTimers(Generic[K]):
    """Calls `on_due` with the key of each expired timer and the time; `on_due` must not raise."""

    def __init__(self, clock: "Clock", on_due: Callable[[K, int], None]) -> None:
        self._now_ms = clock.monotonic_ms
        self._on_due = on_due
        self._queue: TimerQueue[K] = TimerQueue()
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def set(self, key: K, at_ms: int) -> None:
        """Start a timer, or move it."""
        self._queue.set(key, at_ms)
        self._arm(at_ms)

    def cancel(self, key: K) -> None:
        self._queue.cancel(key)

    def stop(self) -> None:
        if self._armed is not None:
            self._armed.cancel()

    def _arm(self, at_ms: int) -> None:
        """Run the timers at this time, or earlier."""
        if self._armed is not None:
            if self._armed_ms <= at_ms:
                return
            self._armed.cancel()
        self._armed_ms = at_ms
        delay_s = max(at_ms - self._now_ms(), 0) / 1000
        self._armed = asyncio.get_running_loop().call_later(delay_s, self._run)

    def _run(self) -> None:
        self._armed = None
        now_ms = self._now_ms()
        for key in self._queue.pop_due(now_ms):
            self._on_due(key, now_ms)
        if (next_ms := self._queue.next_ms) is not None:
            self._arm(next_ms)  # A timer that was set meanwhile may be due later.
