"""Writes the audit log: lines of a file, and records of a topic.

The file is rotated at its maximum size, and one older file is kept, so the log cannot fill a disk.
Events that cannot be written are dropped and counted. A log event reports the first failure and
the end of the failures, for the file and the topic each.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.broker.topics.new_topics import create_topics, new_topic
from headrace.errors import HeadraceError, UnknownTopicOrPartition
from headrace.protocol.batches import Record, build_batch
from headrace.runtime import files
from headrace.security.audit import AuditEvent, AuditLog

if TYPE_CHECKING:
    from headrace.broker.leaders import Leaders
    from headrace.broker.metadata import ClusterMetadata
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)

INTERVAL_MS = 250
_BATCH_BYTES_MAX = 256 << 10
_REPORT_DROPS_MS = 60_000
_TOPIC_TIMEOUT_S = 20.0
_TOPIC_CONFIGS = {"retention.bytes": str(1 << 30)}


class AuditWriter:
    """Takes events from the log at intervals, and writes them to all its places."""

    def __init__(self, settings: "BrokerSettings", tasks: "Tasks", clock: "Clock") -> None:
        self.events = AuditLog(
            settings.node_id,
            settings.headrace_audit_events,
            settings.headrace_audit_events_per_second,
            now_ms=clock.now_ms,
            monotonic_ms=clock.monotonic_ms,
            own_topic=settings.headrace_audit_topic,
        )
        """Receives decisions and logins."""
        self._tasks = tasks
        self._clock = clock
        self._file = settings.headrace_audit_file
        self._file_bytes_max = settings.headrace_audit_file_max_bytes
        self._topic: AuditTopic | None = None
        self._failing: set[str] = set()
        self._reported_ms = clock.monotonic_ms() - _REPORT_DROPS_MS
        self._reported_drops = 0

    def start(self, topic: "AuditTopic | None" = None) -> None:
        """Write from now on, also to a topic."""
        self._topic = topic
        self._tasks.every(lambda: INTERVAL_MS, self.write, "audit log")

    async def finish(self) -> None:
        """Write the last events to the file; the partitions of this node are closed already."""
        self._topic = None
        await self.write()

    async def write(self) -> None:
        """Write the events that wait."""
        events = self.events.take()
        writes = []
        if events and self._file:
            writes.append(self._try(self._file, events, self._write_file))
        if events and self._topic is not None:
            writes.append(self._try(self._topic.name, events, self._topic.write))
        await asyncio.gather(*writes)
        self._report_drops()

    async def _try(
        self,
        place: str,
        events: Sequence[AuditEvent],
        write: Callable[[Sequence[AuditEvent]], Awaitable[None]],
    ) -> None:
        try:
            await write(events)
        except (OSError, HeadraceError, TimeoutError) as error:
            self.events.counts.lost += len(events)
            if place not in self._failing:
                self._failing.add(place)
                fields = {"place": place, "error": str(error) or "no answer in time"}
                _log.error("audit log not written, its events are lost", extra=fields)
        else:
            self.events.counts.written += len(events)
            if place in self._failing:
                self._failing.discard(place)
                _log.info("audit log written again", extra={"place": place})

    async def _write_file(self, events: Sequence[AuditEvent]) -> None:
        content = b"".join(event.line + b"\n" for event in events)
        await self._tasks.in_thread(append_rotated, self._file, content, self._file_bytes_max)

    def _report_drops(self) -> None:
        """Report dropped events, at most once a minute."""
        counts, now_ms = self.events.counts, self._clock.monotonic_ms()
        drops = counts.rate_limited + counts.overflowed
        if drops == self._reported_drops or now_ms - self._reported_ms < _REPORT_DROPS_MS:
            return
        new, self._reported_drops, self._reported_ms = drops - self._reported_drops, drops, now_ms
        _log.warning("audit events dropped, too many of one principal", extra={"count": new})


class AuditTopic:
    """The topic of the audit log, created by the first event."""

    def __init__(
        self, name: str, node_id: int, leaders: "Leaders", controller: "ClusterMetadata"
    ) -> None:
        self.name = name
        self._node_id = node_id
        self._leaders = leaders
        self._controller = controller

    async def write(self, events: Sequence[AuditEvent]) -> None:
        async with asyncio.timeout(_TOPIC_TIMEOUT_S):
            if self.name not in self._controller.image.topics:
                await self._create()
            image = await self._controller.wait_for(lambda image: self.name in image.topics)
            partition = self._node_id % len(image.topics[self.name].partitions)
            for batch in _batches(events):
                await self._leaders.produce(self.name, partition, batch)

    async def _create(self) -> None:
        wanted = new_topic(self.name, partitions=1, configs=_TOPIC_CONFIGS)
        errors = await create_topics(self._controller, [wanted])
        if (error := errors.get(self.name)) is not None:
            raise UnknownTopicOrPartition(f"{self.name} could not be created: {error}") from error


def append_rotated(path: str, content: bytes, bytes_max: int) -> None:
    """Append to a file; a file that would get too large becomes the old one first."""
    try:
        size = files.file_size(path)
    except FileNotFoundError:
        size = 0
    if size and size + len(content) > bytes_max:
        files.rename_if_there(path, f"{path}.1")
    files.append_private(path, content)


def _batches(events: Sequence[AuditEvent]) -> Iterator[bytearray]:
    batch: list[Record] = []
    size = 0
    for event in events:
        if batch and size + len(event.line) > _BATCH_BYTES_MAX:
            yield build_batch(batch)
            batch, size = [], 0
        batch.append(Record(len(batch), event.time_ms, event.source.encode(), event.line, ()))
        size += len(event.line)
    if batch:
        yield build_batch(batch)
