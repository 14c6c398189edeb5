"""The log cleaner: chooses the dirtiest compacted log, cleans it and swaps in the result.

This module runs on the event loop and only decides; the work is done elsewhere (`cleaning`) on
sealed segments. If a topic was deleted or a segment expired meanwhile, the cleaner detects it
before the swap and cancels the round.

The clean offset of a log is written to `cleaner-offset-checkpoint` after a round. A crash costs
only the round: cleaning clean records again changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import msgspec

from headrace.errors import HeadraceError, KafkaStorageError
from headrace.runtime import files
from headrace.storage.checkpoints import write_offsets
from headrace.storage.compaction.batches import LastRecord
from headrace.storage.compaction.cleaner_offsets import CleanerOffsets
from headrace.storage.compaction.cleaning import (
    CleanedGroup,
    CleaningGivenUp,
    CleaningTask,
    SourceSegment,
    discard_cleaned,
)
from headrace.storage.compaction.cleaning_process import clean_aside
from headrace.storage.log import Log
from headrace.storage.segment import CLEANED, Segment
from headrace.storage.segments import segment_index
from headrace.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

_RETRY_MS = 60_000
"""The delay before a failed cleaning is retried."""

Background = Callable[..., Awaitable[Any]]
"""Runs a function with its arguments in a thread."""


class Work(Protocol):
    """The cleaning of one task, group by group."""

    def next(self) -> CleanedGroup | None: ...

    def stop(self) -> None: ...


class CleanerSettings(Protocol):
    """The broker's settings for cleaning."""

    @property
    def log_cleaner_threads(self) -> int: ...

    @property
    def log_cleaner_dedupe_buffer_size(self) -> int: ...

    @property
    def log_cleaner_io_buffer_load_factor(self) -> float: ...

    @property
    def log_cleaner_io_max_bytes_per_second(self) -> float: ...


class CleanerMetrics:
    """Counters of compaction: of the last run, and since the start."""

    __slots__ = (
        "bytes_read",
        "bytes_written",
        "clean_time_max_s",
        "dirty_percent_max",
        "last_run_ms",
        "runs",
        "uncleanable_partitions",
    )

    def __init__(self) -> None:
        self.runs = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.clean_time_max_s = 0.0
        self.dirty_percent_max = 0
        self.uncleanable_partitions = 0
        self.last_run_ms = 0


class Cleanable(msgspec.Struct, frozen=True):
    """A log with a dirty part, and the share of that part."""

    log: Log
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / max(self.clean_bytes + self.dirty_bytes, 1)

    @property
    def is_due(self) -> bool:
        if self.dirty_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def find_dirt(log: Log, checkpoint: int | None, now_ms: int) -> Cleanable | None:
    """The dirty part of a log, None if all cleanable records are clean.

    Cleaning excludes the active segment, uncommitted records, open transactions, and segments with
    records younger than `min.compaction.lag.ms`. It ends at the end of a segment.
    """
    segments = log.segments
    first_dirty_offset = log.log_start_offset if checkpoint is None else checkpoint
    if not log.log_start_offset <= first_dirty_offset <= log.log_end_offset:
        first_dirty_offset = log.log_start_offset
    if segments[-1].base_offset <= first_dirty_offset:
        return None
    first = max(0, segment_index(segments, first_dirty_offset))
    limit = min(log.last_stable_offset, segments[-1].base_offset)
    end = min(max(0, segment_index(segments, limit)), len(segments) - 1)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        end = first + _count_older(segments[first:end], now_ms - lag_ms)
    if end <= first:
        return None
    return Cleanable(
        log,
        first_dirty_offset,
        segments[end].base_offset,
        sum(segment.size for segment in segments[:first]),
        sum(segment.size for segment in segments[first:end]),
        _is_overdue(segments[first:end], now_ms - log.config.max_compaction_lag_ms),
    )


def _count_older(segments: list[Segment], newest_ms: int) -> int:
    """The number of segments before the first with a record that is too young."""
    for at, segment in enumerate(segments):
        if segment.size and segment.largest_timestamp() > newest_ms:
            return at
    return len(segments)


def _is_overdue(segments: list[Segment], oldest_ms: int) -> bool:
    """Return whether records have waited longer than `max.compaction.lag.ms`."""
    if oldest_ms <= 0:
        return False
    return any(0 < segment.first_timestamp() < oldest_ms for segment in segments)


THREADS_MAX = 8
"""The limit of logs cleaned at the same time, even if `log.cleaner.threads` is higher."""


class Cleaner:
    """Cleans the logs of a node, one per run; several runs may happen at once."""

    def __init__(
        self,
        settings: CleanerSettings,
        background: Background,
        metrics: CleanerMetrics | None = None,
        begin: Callable[[CleaningTask], Work] = clean_aside,
    ) -> None:
        self.settings = settings
        self.metrics = metrics or CleanerMetrics()
        self.offsets = CleanerOffsets()
        self.uncleanable: set[TopicPartition] = set()
        self._postponed: dict[TopicPartition, int] = {}
        self._background = background
        self._begin = begin
        self._current: set[Log] = set()
        self._checkpointing = asyncio.Lock()

    @property
    def threads(self) -> int:
        """The maximum number of parallel runs."""
        return min(self.settings.log_cleaner_threads, THREADS_MAX)

    def is_cleaning(self, log: Log) -> bool:
        """Return whether the segments of a log are being cleaned and must not change."""
        return log in self._current

    async def run(self, logs: Iterable[Log], now_ms: int) -> bool:
        """Clean the dirtiest of all logs of the node; False if none is dirty enough."""
        compacted = [log for log in logs if log.config.is_compacted]
        self._forget_all_but(compacted)
        self.metrics.last_run_ms = now_ms
        dirtiest = self.choose(compacted, now_ms)
        if dirtiest is None:
            return False
        self._current.add(dirtiest.log)
        try:
            await self._clean(dirtiest, now_ms)
        finally:
            self._current.discard(dirtiest.log)
            self.metrics.uncleanable_partitions = len(self.uncleanable)
        return True

    def choose(self, logs: Iterable[Log], now_ms: int) -> Cleanable | None:
        """Return the dirtiest compacted log, if any is due."""
        found = [
            cleanable
            for log in logs
            if self._may_be_cleaned(log, now_ms)
            and (cleanable := self._find_dirt(log, now_ms)) is not None
        ]
        dirtiest = max((cleanable.dirty_ratio for cleanable in found), default=0.0)
        self.metrics.dirty_percent_max = int(100 * dirtiest)
        due = [cleanable for cleanable in found if cleanable.is_due]
        return max(due, key=lambda cleanable: cleanable.dirty_ratio, default=None)

    def _forget_all_but(self, logs: list[Log]) -> None:
        self.offsets.forget_all_but(logs)
        there = {log.topic_partition for log in logs}
        self.uncleanable &= there
        for partition in self._postponed.keys() - there:
            del self._postponed[partition]

    def _may_be_cleaned(self, log: Log, now_ms: int) -> bool:
        partition = log.topic_partition
        return (
            log.failure is None
            and log not in self._current
            and partition not in self.uncleanable
            and now_ms >= self._postponed.get(partition, 0)
        )

    def _find_dirt(self, log: Log, now_ms: int) -> Cleanable | None:
        try:
            return find_dirt(log, self.offsets.known(log), now_ms)
        except (OSError, HeadraceError) as error:
            self._note_failure(log, error, now_ms)
            return None

    async def _clean(self, cleanable: Cleanable, now_ms: int) -> None:
        log = cleanable.log
        try:
            task = self._task(cleanable, now_ms)
            last = await self._clean_groups(log, task)
            if last is not None:
                await self._finish(log, cleanable, last)
        except Exception as error:
            # An error in one log must not stop the cleaning of the others.
            self._note_failure(log, error, now_ms)

    def _note_failure(self, log: Log, error: Exception, now_ms: int) -> None:
        """Retry the log later, or never if it would fail again."""
        self._postponed[log.topic_partition] = now_ms + _RETRY_MS
        partition = {"partition": str(log.topic_partition)}
        match error:
            case CleaningGivenUp() | FileNotFoundError() | KafkaStorageError():
                _log.info("cleaning cancelled", extra={**partition, "reason": str(error)})
            case OSError():
                _log.warning("cleaning failed", extra={**partition, "error": str(error)})
                if not files.is_passing(error):
                    log.fail(error)
            case _:
                self.uncleanable.add(log.topic_partition)
                _log.error(
                    "log not compacted until the next start", extra=partition, exc_info=error
                )

    def _task(self, cleanable: Cleanable, now_ms: int) -> CleaningTask:
        """Build the task from the current state of the log."""
        log = cleanable.log
        config = log.config
        settings = self.settings
        sources = tuple(
            SourceSegment(segment.base_offset, segment.size)
            for segment in log.segments
            if segment.base_offset < cleanable.end_offset
        )
        return CleaningTask(
            directory=log.directory,
            sources=sources,
            first_dirty_offset=cleanable.first_dirty_offset,
            end_offset=cleanable.end_offset,
            now_ms=now_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            delete_retention_ms=config.delete_retention_ms,
            map_bytes_max=int(
                settings.log_cleaner_dedupe_buffer_size
                * settings.log_cleaner_io_buffer_load_factor
                / self.threads
            ),
            io_bytes_per_second=settings.log_cleaner_io_max_bytes_per_second / self.threads,
            producers=last_records(log),
            aborted=tuple(log.aborted_transactions(sources[0].base_offset, cleanable.end_offset)),
        )

    async def _clean_groups(self, log: Log, task: CleaningTask) -> CleanedGroup | None:
        work = self._begin(task)
        last = None
        try:
            while (group := await self._background(work.next)) is not None:
                self._install(log, task, group)
                last = group
        finally:
            work.stop()
        return last

    def _install(self, log: Log, task: CleaningTask, group: CleanedGroup) -> None:
        """Replace the source segments by the compacted one, if they still exist."""
        sizes = {source.base_offset: source.size for source in task.sources}
        old = [
            segment for segment in log.segments[:-1] if segment.base_offset in group.base_offsets
        ]
        if (
            log.failure is not None
            or log.directory != task.directory
            or [segment.base_offset for segment in old] != list(group.base_offsets)
            or any(segment.size != sizes[segment.base_offset] for segment in old)
        ):
            discard_cleaned(task.directory, group.base_offsets[0])
            raise CleaningGivenUp("its segments have changed meanwhile")
        new = Segment(
            task.directory,
            group.base_offsets[0],
            group.size,
            log.resources,
            index_interval_bytes=task.index_interval_bytes,
            index_bytes_max=task.segment_index_bytes,
            suffix=CLEANED,
        )
        log.replace_segments(old, [new])

    async def _finish(self, log: Log, cleanable: Cleanable, last: CleanedGroup) -> None:
        """Write the clean offset of the log; the swaps must be synced before."""
        clean_up_to = last.mapped_offset + 1
        self.offsets.advance(log, clean_up_to)
        async with self._checkpointing:  # All logs of a disk share one file.
            await self._background(_write_checkpoint, log.directory, *self.offsets.checkpoint(log))
        self.metrics.runs += 1
        self.metrics.clean_time_max_s = max(self.metrics.clean_time_max_s, last.elapsed_s)
        self.metrics.bytes_read += last.stats.bytes_read
        self.metrics.bytes_written += last.stats.bytes_written
        _log.info(
            "log compacted",
            extra={
                "partition": str(log.topic_partition),
                "from_offset": cleanable.first_dirty_offset,
                "to_offset": clean_up_to,
                "records_read": last.stats.records_read,
                "records_kept": last.stats.records_written,
                "bytes_read": last.stats.bytes_read,
                "bytes_kept": last.stats.bytes_written,
            },
        )


def last_records(log: Log) -> dict[int, LastRecord]:
    """Return the last batch of each producer, whose numbers compaction must keep."""
    return {
        producer.id: LastRecord(
            producer.batches[-1].last_offset if producer.batches else None, producer.epoch
        )
        for producer in log.producers.entries.values()
    }


def _write_checkpoint(log_directory: str, path: str, offsets: dict[TopicPartition, int]) -> None:
    files.fsync_path(log_directory)
    write_offsets(path, offsets)
