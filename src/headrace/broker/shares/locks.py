"""When the locks of share partitions run out: one timer of the loop for the first of them all."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.coordination.timers import TimerQueue
from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    import asyncio

    from headrace.broker.node import Broker

_log = logging.getLogger(__name__)


class Locks:
    """Rings for each share partition whose first lock has run out, and tells the time."""

    def __init__(self, broker: "Broker", ring: Callable[[SharePartitionKey, int], None]) -> None:
        self._broker = broker
        self._ring = ring
        self._queue: TimerQueue[SharePartitionKey] = TimerQueue()
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def set(self, key: SharePartitionKey, at_ms: int) -> None:
        self._queue.set(key, at_ms)
        self._arm()

    def cancel(self, key: SharePartitionKey) -> None:
        self._queue.cancel(key)

    def stop(self) -> None:
        if self._armed is not None:
            self._armed.cancel()

    def _arm(self) -> None:
        next_ms = self._queue.next_ms
        if next_ms is None or (self._armed is not None and next_ms >= self._armed_ms):
            return
        if self._armed is not None:
            self._armed.cancel()
        self._armed_ms = next_ms
        delay_ms = max(0, next_ms - self._broker.clock.monotonic_ms())
        self._armed = self._broker.loop.call_later(delay_ms / 1000, self._run)

    def _run(self) -> None:
        self._armed = None
        now_ms = self._broker.clock.monotonic_ms()
        for key in self._queue.pop_due(now_ms):
            try:
                self._ring(key, now_ms)
            except Exception:  # Or the locks of all others would never run out.
                _log.exception("the locks of %s cannot be looked at", key)
        self._arm()
