"""Run coroutines that rarely wait without a task.

An operation that may have to wait is a coroutine, but on a node of one replica it hardly ever
waits. `finish_now` runs the coroutine immediately, which needs no task if it never waits. If it
waits, the remainder can be awaited as usual. `@eager` does so in every call of a function.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from headrace.errors import KafkaError

P = ParamSpec("P")
T = TypeVar("T")


def eager(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T | Coroutine[Any, Any, T]]:
    """Make an async function return its result, or a coroutine only if it waits."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T | Coroutine[Any, Any, T]:
        return finish_now(function(*args, **kwargs))

    return run


def finish_now(work: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """Return the result of `work`, or a coroutine for its remainder if it waits."""
    try:
        awaited = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    if awaited is not None:  # None is `sleep(0)`, which only yields to other tasks.
        # A future with this mark of a task rejects the next await.
        awaited._asyncio_future_blocking = False
    return _rest(_Suspended(work, awaited))


async def finish_each(works: Iterable[Coroutine[Any, Any, T]]) -> list[T | KafkaError]:
    """Run operations side by side; return the result or the KafkaError of each, in order.

    They begin in order, and those that never wait end in order.
    """
    results: list[Any] = []
    for work in works:
        try:
            results.append(finish_now(work))
        except KafkaError as error:
            results.append(error)
    waiting = [place for place, found in enumerate(results) if asyncio.iscoroutine(found)]
    if waiting:
        rest = [results[place] for place in waiting]
        for place, found in zip(
            waiting, await asyncio.gather(*rest, return_exceptions=True), strict=True
        ):
            if isinstance(found, BaseException) and not isinstance(found, KafkaError):
                raise found
            results[place] = found
    return results


class _Suspended:
    """A coroutine that began outside of a task and already waits for a future."""

    __slots__ = ("_awaited", "_work")

    def __init__(self, work: Coroutine[Any, Any, Any], awaited: Any) -> None:
        self._work = work
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        work, awaited = self._work, self._awaited
        if awaited is not None:
            # Without this mark a task rejects the future as yielded by mistake.
            awaited._asyncio_future_blocking = True
        while True:
            failure: BaseException | None = None
            result = None
            try:
                result = yield awaited
            except BaseException as error:  # The coroutine itself handles its cancellation.
                failure = error
            try:
                awaited = work.send(result) if failure is None else work.throw(failure)
            except StopIteration as done:
                return done.value


async def _rest(suspended: _Suspended) -> Any:
    return await suspended
