"""Requests that wait for records: parked on their partitions, woken once per turn of the loop."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

_log = logging.getLogger(__name__)


class Waiter(Protocol):
    """Something that waits for a change."""

    def try_again(self) -> None: ...


class Watched(Protocol):
    """Something that changes; a partition, to a waiting fetch."""

    waiters: dict[Waiter, None]


class Awaited(Protocol):
    """Something whose change wakes waiters; who they are is its own business."""

    @property
    def waiters(self) -> Iterable[Waiter]: ...


class Attempt(Protocol):
    """Answers a request if it can be by now; returns whether it did."""

    def __call__(self, *, is_last: bool) -> bool: ...


class Requester(Protocol):
    """The connection of a waiting request."""

    @property
    def peer(self) -> str: ...

    def close(self) -> None: ...


class Delayed:
    """A request that is tried again when one of the things it watches has changed.

    `attempt` answers the request and returns true, or returns false to wait on. It is called a
    last time with `is_last=True` when the time is up. If it fails, no answer follows, so
    the requester's connection is closed. Other waiting requests are still tried.
    """

    __slots__ = ("_attempt", "_requester", "_timer", "_watched")

    def __init__(self, attempt: Attempt, requester: Requester) -> None:
        self._attempt = attempt
        self._requester = requester
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
            _log.exception(
                "delayed request failed, connection closed",
                extra={"connection": self._requester.peer},
            )
            self._requester.close()
            return True


async def until(
    condition: Callable[[], bool], watched: Iterable[Watched], timeout_s: float
) -> bool:
    """Wait in a task until a condition holds; return false if the time is up before."""
    if condition():
        return True
    waiting = _Condition(condition)
    things = tuple(watched)
    for thing in things:
        thing.waiters[waiting] = None
    try:
        await asyncio.wait_for(waiting.holds, timeout_s)
    except TimeoutError:
        return condition()
    finally:
        for thing in things:
            thing.waiters.pop(waiting, None)
    return True


class _Condition:
    """A task that waits until a condition holds."""

    __slots__ = ("_condition", "holds")

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition
        self.holds: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def try_again(self) -> None:
        if not self.holds.done() and self._condition():
            self.holds.set_result(None)


class WakeUps:
    """Collects what changed during a turn of the loop, so that each waiter is tried once."""

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop
        self._changed: dict[Awaited, None] = {}

    def changed(self, thing: Awaited) -> None:
        """Note a change; call only for something with waiters."""
        if not self._changed:
            self._loop.call_soon(self._wake)
        self._changed[thing] = None

    def _wake(self) -> None:
        changed, self._changed = self._changed, {}
        waiters = dict.fromkeys(waiter for thing in changed for waiter in thing.waiters)
        for waiter in waiters:
            waiter.try_again()
