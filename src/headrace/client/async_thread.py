"""A thread of a client's own, for calls that wait and would hold up the event loop.

One thread, so that calls of one client follow each other, as librdkafka's consumers need it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SLICE_S = 0.25
"""Waits are cut into such pieces, so that other calls get their turn."""


class ClientThread:
    """Runs one call after the other."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, name)

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.start(call, *args, **kwargs)

    def close(self) -> None:
        self._executor.shutdown(wait=False)


async def until_ready(
    thread: ClientThread, fetch: Callable[[float], bool], timeout_s: float
) -> bool:
    """Ask in slices of time; what is fetched stays with the client, so a cancel loses nothing."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        left_s = max(0.0, deadline - loop.time())
        if await thread.run(fetch, min(left_s, SLICE_S)):
            return True
        if loop.time() >= deadline:
            return False
