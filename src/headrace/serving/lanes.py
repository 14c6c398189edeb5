"""Threads that answer questions: so many at once, so many waiting, each for so long."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

import duckdb

from headrace.serving.errors import Busy, QueryTooSlow

T = TypeVar("T")

_GRACE_S = 1.0
"""So long an interrupted query may take to notice; then it is answered for, and runs on alone."""


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
        self.under_way = 0
        self._most = threads + waiting_max
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"serving-{name}")
        # Started now: a thread's stack may not be had later, when memory is short.
        start = threading.Barrier(threads)
        for _ in range(threads):
            self._threads.submit(start.wait)

    async def run(self, work: Callable[[Running], T], seconds: float) -> T:
        """Do the work in a thread; stop it when its time is up or the asker has gone."""
        if self.under_way >= self._most:
            raise Busy(f"{self.under_way} questions are being answered or wait; ask again soon")
        running = Running(seconds)
        self.under_way += 1
        future = self._threads.submit(work, running)
        future.add_done_callback(_counted_down(self, asyncio.get_running_loop()))
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait([waiting], timeout=seconds)
            if not done and future.cancel():
                raise Busy(f"no thread was free within {seconds:g} seconds; ask again later")
            if not done:
                running.stop()
                done, _ = await asyncio.wait([waiting], timeout=_GRACE_S)
            if not done:
                waiting.add_done_callback(_ignore)
                raise QueryTooSlow(f"the query took longer than {seconds:g} seconds")
            return waiting.result()
        except asyncio.CancelledError:
            running.stop()
            waiting.add_done_callback(_ignore)
            raise

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _counted_down(lane: Lane, loop: asyncio.AbstractEventLoop) -> Callable[[object], None]:
    """A callback that counts on the loop, whichever thread ends the work."""

    def decrease() -> None:
        lane.under_way -= 1

    def done(_: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(decrease)

    return done


def _ignore(future: asyncio.Future[T]) -> None:
    """Take note of a late outcome, so that asyncio does not complain that nobody did."""
    if not future.cancelled():
        future.exception()
