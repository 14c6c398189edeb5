"""Threads that answer questions: so many at once, so many waiting, each for so long."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, sleep
from typing import Any, TypeVar

import duckdb

from headrace.http.errors import AskerGone
from headrace.serving.errors import Busy, QueryTooSlow

T = TypeVar("T")

_GRACE_S = 1.0
"""So long an interrupted query may take to notice; then it is answered for, and runs on alone."""
_INTERRUPT_EVERY_S = 0.05
_UNWATCHED_S = 0.05
"""So long nobody looks whether the asker is still there."""
_STOP_S_MAX = 5.0


class Running:
    """One question under way: when it must be done, and how to stop it."""

    def __init__(self, seconds: float) -> None:
        self.ends_at = monotonic() + seconds
        self._lock = threading.Lock()
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._is_stopped = False

    @property
    def seconds_left(self) -> float:
        return max(self.ends_at - monotonic(), 0.0)

    def begin(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """From now on this connection works for the question."""
        with self._lock:
            if self._is_stopped:
                raise QueryTooSlow("the query was stopped before it began")
            self._cursor = cursor

    def end(self) -> None:
        """The connection is done; it must not be interrupted any more."""
        with self._lock:
            self._cursor = None

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._cursor is not None:
                self._cursor.interrupt()


class Lane:
    """A few threads and a bounded queue before them."""

    def __init__(self, name: str, threads: int, waiting_max: int) -> None:
        self.name = name
        self._most = threads + waiting_max
        self._under_way: dict[Future[Any], Running] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"serving-{name}")
        # Started now: a thread's stack may not be had later, when memory is short.
        start = threading.Barrier(threads)
        for _ in range(threads):
            self._threads.submit(start.wait)

    @property
    def under_way(self) -> int:
        """How many questions are answered or wait, those included that nobody waits for."""
        return len(self._under_way)

    async def run(
        self,
        work: Callable[[Running], T],
        seconds: float,
        gone: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> T:
        """Do the work in a thread; stop it when its time is up or the asker has gone.

        `gone` returns when the asker has. It is not asked for what is done in a moment: a watch
        for each question would cost more than it saves.
        """
        if self.under_way >= self._most:
            raise Busy(f"{self.under_way} questions are being answered or wait; ask again soon")
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
                raise Busy(f"no thread was free within {seconds:g} seconds; ask again later")
            if not waiting.done():
                self._stop(future, running)
                await asyncio.wait([waiting], timeout=_GRACE_S)
            if not waiting.done():
                waiting.add_done_callback(_ignore)
                raise QueryTooSlow.after(seconds)
            return waiting.result()
        except QueryTooSlow as error:  # The thread knows that it was stopped, and not why.
            raise QueryTooSlow.after(seconds) from error
        except (AskerGone, asyncio.CancelledError):
            waiting.add_done_callback(_ignore)
            self._stop(future, running)
            raise

    def close(self) -> bool:
        """Stop everything; whether all of it has ended, since some of it cannot be interrupted."""
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
    """Wait for an answer, but not for longer than somebody waits for it."""
    watch = asyncio.ensure_future(gone())
    try:
        both: list[asyncio.Future[Any]] = [waiting, watch]
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done() and watch.done():
            watch.result()
            raise AskerGone("the asker has gone")
    finally:
        watch.cancel()


async def _interrupt_until_done(future: Future[Any], running: Running) -> None:
    """Interrupt again and again: DuckDB forgets an interrupt that comes before its query begins."""
    while not future.done():
        running.stop()
        await asyncio.sleep(_INTERRUPT_EVERY_S)


def _ignore(future: asyncio.Future[T]) -> None:
    """Take note of a late outcome, so that asyncio does not complain that nobody did."""
    if not future.cancelled():
        future.exception()
