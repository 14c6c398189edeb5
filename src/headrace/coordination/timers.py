"""Many timers in one heap: sessions, rebalances, locks, transaction timeouts.

Most timers are postponed again and again (every heartbeat moves a session's end) and hardly ever
run out. So postponing one only stores the new time; the heap is updated when the old time comes.
"""

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class TimerQueue(Generic[K]):
    """Timers by name, in the order in which they run out."""

    def __init__(self) -> None:
        self._at_ms: dict[K, int] = {}
        self._queued_ms: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._at_ms)

    def __contains__(self, key: K) -> bool:
        return key in self._at_ms

    def set(self, key: K, at_ms: int) -> None:
        """Start a timer, or move it."""
        self._at_ms[key] = at_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or at_ms < queued_ms:
            self._queued_ms[key] = at_ms
            heappush(self._heap, (at_ms, next(self._order), key))

    def cancel(self, key: K) -> None:
        self._at_ms.pop(key, None)

    @property
    def next_ms(self) -> int | None:
        """The next time to call `pop_due`, no later than the first timer runs out."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> list[K]:
        """Remove and return the timers that have run out, earliest first."""
        due = []
        heap, queued = self._heap, self._queued_ms
        while heap and heap[0][0] <= now_ms:
            queued_ms, _, key = heappop(heap)
            if queued.get(key) != queued_ms:
                continue  # The timer was moved to an earlier time, and queued again for it.
            del queued[key]
            at_ms = self._at_ms.get(key)
            if at_ms is None:
                continue
            if at_ms > now_ms:
                self.set(key, at_ms)
            else:
                del self._at_ms[key]
                due.append(key)
        return due
