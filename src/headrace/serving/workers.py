"""Pools of threads for queries, bounded in number, queue and time."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any, TypeVar

import duckdb

from headrace.http.errors import ClientDisconnected
from headrace.serving.errors import Busy, QueryTooSlow

T = TypeVar("T")

_GRACE_S = 1.0
"""The time for an interrupted query to end; after it the request is answered without it."""
_INTERRUPT_EVERY_S = 0.05
_UNWATCHED_S = 0.05
"""The time before the client's connection is watched."""
_STOP_S_MAX = 5.0


class Running:
    """A request under way: its deadline, and its connection to interrupt."""

    def __init__(self, seconds: float) -> None:
        self.ends_at = monotonic() + seconds
        self._lock = threading.Lock()
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._is_stopped = False

    @property
    def seconds_left(self) -> float:
        return max(self.ends_at - monotonic(), 0.0)

    def begin(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Run on this connection from now on."""
        with self._lock:
            if self._is_stopped:
                raise QueryTooSlow("the query was stopped before it began")
            self._cursor = cursor

    def end(self) -> None:
        """Stop using the connection, which must not be interrupted any more."""
        with self._lock:
            self._cursor = None

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._cursor is not None:
                self._cursor.interrupt()


class WorkerPool:
    """A few threads with a bounded queue."""

    def __init__(self, name: str, threads: int, waiting_max: int) -> None:
        self.name = name
        self._most = threads + waiting_max
        self._under_way: dict[Future[Any], Running] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"serving-{name}")
        # Started now: later there may be no memory for their stacks.
        start = threading.Barrier(threads)
        for _ in range(threads):
            self._threads.submit(start.wait)

    @property
    def under_way(self) -> int:
        """The number of running and waiting requests, including abandoned ones."""
        return len(self._under_way)

    async def run(
        self,
        work: Callable[[Running], T],
        seconds: float,
        gone: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> T:
        """Run work in a thread; stop it at the deadline or when the client disconnects.

        `gone` returns when the client has disconnected. Short requests are not watched: a watch
        for each would cost more than it saves.
        """
        if self.under_way >= self._most:
            raise Busy(f"{self.under_way} requests are running or waiting; retry soon")
        running = Running(seconds)
        future = self._threads.submit(work, running)
        self._under_way[future] = running
        future.add_done_callback(self._under_way.pop)
        waiting = asyncio.wrap_future(future)
        try:
            await asyncio.wait([waiting], timeout=min(seconds, _UNWATCHED_S))
            if not waiting.done() and gone is not None:
                await _wait_watching(waiting, gone, running.seconds_left)
            elif not waiting.done():
                await asyncio.wait([waiting], timeout=running.seconds_left)
            if not waiting.done() and future.cancel():
                raise Busy(f"no thread was free within {seconds:g} seconds; retry later")
            if not waiting.done():
                self._stop(future, running)
                await asyncio.wait([waiting], timeout=_GRACE_S)
            if not waiting.done():
                waiting.add_done_callback(_ignore)
                raise QueryTooSlow.after(seconds)
            return waiting.result()
        except QueryTooSlow as error:  # The thread cannot distinguish a deadline from a disconnect.
            raise QueryTooSlow.after(seconds) from error
        except (ClientDisconnected, asyncio.CancelledError):
            waiting.add_done_callback(_ignore)
            self._stop(future, running)
            raise

    def close(self) -> bool:
        """Stop all requests; return False if one cannot be interrupted."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        ends_at = monotonic() + _STOP_S_MAX
        while self._under_way and monotonic() < ends_at:
            for running in list(self._under_way.values()):
                running.stop()
            sleep(_INTERRUPT_EVERY_S)
        return not self._under_way

    def _stop(self, future: Future[Any], running: Running) -> None:
        running.stop()
        task = asyncio.ensure_future(_interrupt_until_done(future, running))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)


async def _wait_watching(
    waiting: asyncio.Future[T], gone: Callable[[], Coroutine[Any, Any, None]], seconds: float
) -> None:
    """Wait for a result until the client disconnects."""
    watch = asyncio.ensure_future(gone())
    try:
        both: list[asyncio.Future[Any]] = [waiting, watch]
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done() and watch.done():
            watch.result()
            raise ClientDisconnected("the client has disconnected")
    finally:
        watch.cancel()


async def _interrupt_until_done(future: Future[Any], running: Running) -> None:
    """Interrupt repeatedly: DuckDB drops an interrupt that arrives before the query begins."""
    while not future.done():
        running.stop()
        await asyncio.sleep(_INTERRUPT_EVERY_S)


def _ignore(future: asyncio.Future[T]) -> None:
    """Retrieve a late outcome, so that asyncio does not report it as lost."""
    if not future.cancelled():
        future.exception()
