"""Requests that wait for records: parked on their partitions, woken once per turn of the loop."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Watched(Protocol):
    """Something that changes; a partition, to a waiting fetch."""

    waiters: "dict[Delayed, None]"


class Delayed:
    """A request that is tried again when one of the things it watches has changed.

    `attempt` answers the request and returns true, or returns false to wait on. It is called a
    last time with `is_last=True` when the time is up.
    """

    __slots__ = ("_attempt", "_timer", "_watched")

    def __init__(self, attempt: Callable[[bool], bool]) -> None:
        self._attempt = attempt
        self._timer: asyncio.TimerHandle | None = None
        self._watched: tuple[Watched, ...] = ()

    def park(
        self, loop: "asyncio.AbstractEventLoop", watched: Iterable[Watched], timeout_s: float
    ) -> None:
        self._watched = tuple(watched)
        for thing in self._watched:
            thing.waiters[self] = None
        self._timer = loop.call_later(timeout_s, self._expire)

    def abandon(self) -> None:
        """Forget the request, because its client is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for thing in self._watched:
            thing.waiters.pop(self, None)
        self._watched = ()

    def try_again(self) -> None:
        if self._timer is not None and self._attempt(False):
            self.abandon()

    def _expire(self) -> None:
        self.abandon()
        self._attempt(True)


class WakeUps:
    """Collects what changed during a turn of the loop, so that each waiter is tried once."""

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._changed: dict[Watched, None] = {}

    def changed(self, thing: Watched) -> None:
        """Note a change; call only for something with waiters."""
        if not self._changed:
            self._loop.call_soon(self._wake)
        self._changed[thing] = None

    def _wake(self) -> None:
        changed, self._changed = self._changed, {}
        waiters = dict.fromkeys(waiter for thing in changed for waiter in thing.waiters)
        for waiter in waiters:
            waiter.try_again()
