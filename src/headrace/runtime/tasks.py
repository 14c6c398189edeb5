"""Background work: tasks with an owner, rounds at intervals, and threads for the disk.

All background work belongs to one `Tasks`, which the node stops before it closes its files. A
round that fails is logged and repeated. A task that ends although it should run for the whole
life of the node is an error that stops the node.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Action = Callable[[], Awaitable[None] | None]


_YEAR_MS = 365 * 24 * 3600 * 1000


class Tasks:
    """All background work of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads_max: int = 12) -> None:
        self._loop = loop
        self._threads_max = threads_max
        self._threads: ThreadPoolExecutor | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """In the order of their start, in which a stop cancels them."""

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a coroutine until it ends or the node stops."""
        task = self._loop.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def every(
        self, interval_ms: Callable[[], float], action: Action, name: str, *, first_ms: float = -1
    ) -> asyncio.Task[None]:
        """Run an action repeatedly, with the interval between two rounds.

        The interval is read each time, because settings change while the node runs.
        """
        first = interval_ms() if first_ms < 0 else first_ms
        return self.start(self._rounds(interval_ms, action, name, first), name)

    def in_thread(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Run a blocking function in a thread; the first call starts the pool."""
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._threads_max, thread_name_prefix="headrace")
        return self._loop.run_in_executor(self._threads, partial(function, *args, **kwargs))

    async def stop(self) -> None:
        """Cancel the tasks and wait for them, then for the threads to finish their work."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._threads is not None:
            threads, self._threads = self._threads, None
            await self._loop.run_in_executor(None, threads.shutdown)

    async def _rounds(
        self, interval_ms: Callable[[], float], action: Action, name: str, first_ms: float
    ) -> None:
        await _sleep(first_ms)
        while True:
            try:
                outcome = action()
                if outcome is not None:
                    await outcome
            except Exception:
                _log.exception("periodic task failed, retrying later", extra={"task": name})
            await _sleep(interval_ms())

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task failed", extra={"task": task.get_name()}, exc_info=error)


async def _sleep(duration_ms: float) -> None:
    """Sleep at most a year: Kafka's "never" is the largest long, too long for a timer."""
    await asyncio.sleep(min(duration_ms, _YEAR_MS) / 1000)
