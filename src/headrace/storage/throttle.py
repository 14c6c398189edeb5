"""How fast background work may read and write, so that it leaves the disk to those who wait."""

import time
from collections.abc import Callable

_WINDOW_S = 0.3
"""Debts are paid and savings are lost in steps of this length, as in Kafka's cleaner."""


class Throttle:
    """Lets so many bytes a second pass and sleeps when there were more. For threads only."""

    __slots__ = ("_bytes_per_second", "_monotonic", "_since", "_sleep", "_spent", "_start")

    def __init__(
        self,
        bytes_per_second: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._start = self._since = monotonic()
        self._spent = 0

    @property
    def elapsed_s(self) -> float:
        """How long the work has taken so far."""
        return self._monotonic() - self._start

    def spend(self, size: int) -> None:
        """Account for bytes that were just read or written, and wait if they were too many."""
        self._spent += size
        elapsed = self._monotonic() - self._since
        due = self._spent / self._bytes_per_second
        if due - elapsed > _WINDOW_S:
            self._sleep(due - elapsed)
        elif elapsed < _WINDOW_S:
            return
        self._since = self._monotonic()
        self._spent = 0
