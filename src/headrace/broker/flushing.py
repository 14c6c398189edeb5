"""fsync for topics that require it, in a thread and shared by all waiting requests (group commit).

While one round of fsyncs runs in a thread, the next round gathers: however many producers
wait, the disk sees one fsync per log and round. The waiters are bounded by the connections.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter_ns
from types import MappingProxyType
from typing import TYPE_CHECKING

from headrace.errors import KafkaStorageError

if TYPE_CHECKING:
    import asyncio

    from headrace.runtime.clock import Clock
    from headrace.runtime.durations import Durations
    from headrace.storage.flushing import FlushPlan
    from headrace.storage.log import Log


Lost = Mapping["Log", KafkaStorageError]
"""Logs that could not be synced, with their errors."""

Then = Callable[[Lost], None]

_NOTHING_LOST: Lost = MappingProxyType({})


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
        self._waiters: list[tuple[Sequence[Log], Then]] = []
        self._round: asyncio.Task[None] | None = None

    def flush(self, logs: "Sequence[Log]", then: Then) -> None:
        """Sync the logs as they are now, then call `then` with those that failed."""
        self._logs.update(dict.fromkeys(logs))
        self._waiters.append((logs, then))
        if self._round is None:
            self._round = self._loop.create_task(self._run())

    async def stop(self) -> None:
        """Finish the round under way, because its requests must be answered."""
        if self._round is not None:
            await self._round

    async def _run(self) -> None:
        try:
            while self._waiters:
                logs, self._logs = list(self._logs), {}
                waiters, self._waiters = self._waiters, []
                lost: dict[Log, KafkaStorageError] = {}
                for log in logs:
                    failure = await self._flush_one(log)
                    if failure is not None:
                        lost[log] = failure
                for wanted, then in waiters:
                    then(_lost_of(wanted, lost) if lost else _NOTHING_LOST)
        finally:
            self._round = None

    async def _flush_one(self, log: "Log") -> KafkaStorageError | None:
        """Sync one log; one whose files are gone fails alone."""
        try:
            plan = log.plan_flush()
        except (OSError, KafkaStorageError) as error:
            if isinstance(error, OSError):
                self._on_failure(log, error)
            return KafkaStorageError(f"{log.topic_partition} cannot be synced: {error}")
        return await self.run(log, plan)

    async def run(self, log: "Log", plan: "FlushPlan") -> KafkaStorageError | None:
        """Sync the files of a plan; a failed disk is reported, and its error returned."""
        began_ns = perf_counter_ns()
        try:
            await self._background(plan.run)
        except OSError as error:
            self._on_failure(log, error)
            return KafkaStorageError(f"the disk refused to store {log.topic_partition}: {error}")
        log.flushed(plan, self._clock.now_ms())
        self._durations.add_ns(perf_counter_ns() - began_ns)
        return None


def _lost_of(wanted: "Sequence[Log]", lost: Lost) -> Lost:
    """Return the failed logs among those that one request has written to."""
    return {log: lost[log] for log in wanted if log in lost}
