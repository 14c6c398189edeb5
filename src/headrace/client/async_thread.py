"""A thread per client, for blocking calls that would stall the event loop.

A single thread keeps the calls of one client in order, as librdkafka's consumers require.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Plain = TypeVar("Plain")
Plain_co = TypeVar("Plain_co", covariant=True)

SLICE_S = 0.25
"""Length of one wait; a long wait is split so that other calls can run in between."""


class ClientThread:
    """A thread that runs calls one after the other."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, name)

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.start(call, *args, **kwargs)

    def close(self) -> None:
        self._executor.shutdown(wait=False)


class Caller(Protocol[Plain_co]):
    """An asyncio client that runs functions of a plain object in a thread."""

    async def call(self, function: Callable[[Plain_co], T]) -> T: ...


class Awaited(Generic[Plain, P, T]):
    """A method of a plain object, awaited on an asyncio client of it."""

    def __init__(self, function: Callable[Concatenate[Plain, P], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(
        self, client: Caller[Plain], owner: type | None = None
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        def run(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return client.call(lambda plain: self._function(plain, *args, **kwargs))

        return run
