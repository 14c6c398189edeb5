"""Coroutines that mostly do not wait, run without a task as far as they get.

An operation that may have to wait is written as a coroutine, yet on a node of one replica it
hardly ever does. `finish_now` runs it on the spot and makes a task unnecessary if it never waits;
if it does, what is left of it can be awaited as usual.
"""

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def finish_now(work: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """The result of `work` if it needs no waiting, else a coroutine for the rest of it."""
    try:
        awaited = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    if awaited is not None:  # None is `sleep(0)`, which only lets others go first.
        # With this mark, which belongs to a task, a future refuses the next one who awaits it.
        awaited._asyncio_future_blocking = False
    return _rest(_Suspended(work, awaited))


class _Suspended:
    """A coroutine that was begun outside of any task, and waits for something already."""

    __slots__ = ("_awaited", "_work")

    def __init__(self, work: Coroutine[Any, Any, Any], awaited: Any) -> None:
        self._work = work
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        work, awaited = self._work, self._awaited
        if awaited is not None:
            # Without this mark a task takes a future for something that was yielded by mistake.
            awaited._asyncio_future_blocking = True
        while True:
            failure: BaseException | None = None
            result = None
            try:
                result = yield awaited
            except BaseException as error:  # A cancellation too is the work's own business.
                failure = error
            try:
                awaited = work.send(result) if failure is None else work.throw(failure)
            except StopIteration as done:
                return done.value


async def _rest(suspended: _Suspended) -> Any:
    return await suspended
