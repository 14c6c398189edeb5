"""Requests that wait for records: parked on their partitions, woken once per turn of the loop."""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger(__name__)


class Watched(Protocol):
    """Something that changes; a partition, to a waiting fetch."""

    waiters: "dict[Delayed, None]"


class Attempt(Protocol):
    """Answers a request if it can be by now; returns whether it did."""

    def __call__(self, *, is_last: bool) -> bool: ...


class Delayed:
    """A request that is tried again when one of the things it watches has changed.

    `attempt` answers the request and returns true, or returns false to wait on. It is called a
    last time with `is_last=True` when the time is up. If it fails nobody will answer any more, so
    `give_up` is called, which closes the connection; others who wait are tried all the same.
    """

    __slots__ = ("_attempt", "_give_up", "_timer", "_watched")

    def __init__(self, attempt: Attempt, give_up: Callable[[], None]) -> None:
        self._attempt = attempt
        self._give_up = give_up
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
        if self._timer is not None and self._is_answered(is_last=False):
            self.abandon()

    def _expire(self) -> None:
        self.abandon()
        self._is_answered(is_last=True)

    def _is_answered(self, *, is_last: bool) -> bool:
        try:
            return self._attempt(is_last=is_last)
        except Exception:
            _log.exception("a request that waited failed; its connection is closed")
            self._give_up()
            return True


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
