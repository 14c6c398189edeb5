"""fsync for topics that ask for it, off the event loop and shared by all who wait (group commit).

While one round of fsyncs runs in a thread, the next round gathers: however many producers
wait, the disk sees one fsync per log and round. The waiters are bounded by the connections.
"""

from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter_ns
from typing import TYPE_CHECKING

from headrace.errors import KafkaStorageError

if TYPE_CHECKING:
    import asyncio

    from headrace.runtime.clock import Clock
    from headrace.runtime.metrics import Durations
    from headrace.storage.flushing import FlushPlan
    from headrace.storage.log import Log


class Flusher:
    """Runs rounds of fsyncs, one at a time."""

    def __init__(
        self,
        loop: "asyncio.AbstractEventLoop",
        background: Callable[..., Awaitable[object]],
        on_failure: "Callable[[Log, OSError], None]",
        *,
        clock: "Clock",
        durations: "Durations",
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._durations = durations
        self._background = background
        self._on_failure = on_failure
        self._logs: dict[Log, None] = {}
        self._waiters: list[Callable[[KafkaStorageError | None], None]] = []
        self._round: asyncio.Task[None] | None = None

    def flush(
        self, logs: "Iterable[Log]", then: "Callable[[KafkaStorageError | None], None]"
    ) -> None:
        """Bring the logs to the disk as they are now, then call `then`, with what went wrong."""
        self._logs.update(dict.fromkeys(logs))
        self._waiters.append(then)
        if self._round is None:
            self._round = self._loop.create_task(self._run())

    async def stop(self) -> None:
        """Finish the round under way; whoever waits for it has been promised an answer."""
        if self._round is not None:
            await self._round

    async def _run(self) -> None:
        try:
            while self._waiters:
                logs, self._logs = list(self._logs), {}
                waiters, self._waiters = self._waiters, []
                failure: KafkaStorageError | None = None
                for log in logs:
                    failure = await self._flush_one(log) or failure
                for then in waiters:
                    then(failure)
        finally:
            self._round = None

    async def _flush_one(self, log: "Log") -> KafkaStorageError | None:
        """A log whose files are gone fails alone; the others of the round are synced."""
        try:
            plan = log.plan_flush()
        except (OSError, KafkaStorageError) as error:
            if isinstance(error, OSError):
                self._on_failure(log, error)
            return KafkaStorageError(f"{log.topic_partition} cannot be synced: {error}")
        return await self.carry_out(log, plan)

    async def carry_out(self, log: "Log", plan: "FlushPlan") -> KafkaStorageError | None:
        """Sync what a plan names; a disk that refuses is reported, and the error returned."""
        began_ns = perf_counter_ns()
        try:
            await self._background(plan.run)
        except OSError as error:
            self._on_failure(log, error)
            return KafkaStorageError(f"the disk refused to store {log.topic_partition}: {error}")
        log.flushed(plan, self._clock.now_ms())
        self._durations.add_ns(perf_counter_ns() - began_ns)
        return None
