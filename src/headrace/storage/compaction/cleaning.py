"""The work of cleaning one log, on files alone: old segments are read, compacted ones written.

It runs in a thread or in a process of its own (`cleaning_process`), so a `CleaningTask` holds all
its input, and it touches no log. First the keys of the dirty part are mapped; then groups of
segments are written as one `.cleaned` segment each. After each group the caller
swaps the new segment in before it continues, so that a log needs the space of at most one more
segment.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from headrace.errors import HeadraceError
from headrace.protocol.batches import BatchHeader
from headrace.runtime import files
from headrace.storage.compaction.batches import (
    Compaction,
    CompactionStats,
    KeptBatch,
    LastRecord,
    control_type_of,
    map_batch,
)
from headrace.storage.compaction.cleaned_transactions import CleanedTransactions
from headrace.storage.compaction.offset_map import OffsetMap
from headrace.storage.indexes import AbortedTransaction
from headrace.storage.resources import Resources
from headrace.storage.scanning import batches_in
from headrace.storage.segment import (
    CLEANED,
    INDEX,
    LOG,
    RELATIVE_OFFSET_MAX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Segment,
)

_WRITE_BYTES = 256 * 1024

_THROTTLE_WINDOW_S = 0.3
"""The throttle sleeps, and unused bytes expire, in steps of this length, as in Kafka."""


class SourceSegment(msgspec.Struct, frozen=True):
    """A sealed segment as it was when the task was made."""

    base_offset: int
    size: int


class CleaningTask(msgspec.Struct, frozen=True, kw_only=True):
    """One round over one log: everything below `end_offset` is sealed and committed."""

    directory: str
    sources: tuple[SourceSegment, ...]
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    map_bytes_max: int
    io_bytes_per_second: float
    producers: dict[int, LastRecord]
    aborted: tuple[AbortedTransaction, ...]


class CleanedGroup(msgspec.Struct, frozen=True):
    """Old segments, and the size of the `.cleaned` segment that will replace them."""

    base_offsets: tuple[int, ...]
    size: int
    mapped_offset: int
    stats: CompactionStats
    elapsed_s: float


class CleaningGivenUp(HeadraceError):
    """Cleaning cannot continue: the log has changed, or the process has ended."""


class Cleaning:
    """The work of one task, done in the calls of `next`."""

    def __init__(self, task: CleaningTask) -> None:
        self._groups = _clean(task)

    def next(self) -> CleanedGroup | None:
        """Write the next group; the caller has swapped in the previous one."""
        return next(self._groups, None)

    def stop(self) -> None:
        """Do nothing: no resource is held between two calls."""


class Throttle:
    """A rate limit for a thread, which sleeps after too many bytes: the disk is for requests."""

    __slots__ = ("_bytes_per_second", "_monotonic", "_since", "_sleep", "_spent", "_start")

    def __init__(
        self,
        bytes_per_second: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._start = self._since = monotonic()
        self._spent = 0

    @property
    def elapsed_s(self) -> float:
        """The elapsed time of the work."""
        return self._monotonic() - self._start

    def spend(self, size: int) -> None:
        """Account for bytes that were just read or written, and wait if they were too many."""
        self._spent += size
        elapsed = self._monotonic() - self._since
        due = self._spent / self._bytes_per_second
        if due - elapsed > _THROTTLE_WINDOW_S:
            self._sleep(due - elapsed)
        elif elapsed < _THROTTLE_WINDOW_S:
            return
        self._since = self._monotonic()
        self._spent = 0


def _clean(task: CleaningTask) -> Iterator[CleanedGroup]:
    throttle = Throttle(task.io_bytes_per_second)
    offsets = OffsetMap()
    stats = CompactionStats()
    mapped_offset = _map_keys(task, offsets, throttle)
    compaction = Compaction(
        offsets,
        mapped_offset,
        end_offset=task.end_offset,
        now_ms=task.now_ms,
        delete_retention_ms=task.delete_retention_ms,
        transactions=CleanedTransactions(task.aborted),
        producers=task.producers,
        stats=stats,
    )
    for group in _groups_of(task, mapped_offset):
        size = _clean_group(task, group, compaction, throttle)
        base_offsets = tuple(source.base_offset for source in group)
        yield CleanedGroup(base_offsets, size, mapped_offset, stats, throttle.elapsed_s)


def _map_keys(task: CleaningTask, offsets: OffsetMap, throttle: Throttle) -> int:
    """Map the keys of the dirty part until the map is full; return the last offset mapped.

    Batches are mapped whole, and at least one is mapped even in a tiny map: a round without
    progress would repeat for ever.
    """
    transactions = CleanedTransactions(task.aborted)
    mapped_offset = task.first_dirty_offset - 1
    for at, source in enumerate(task.sources):
        end_offset = _end_offset(task, at)
        if end_offset <= task.first_dirty_offset:
            continue
        for header, batch in _batches_of(task, source):
            throttle.spend(header.size)
            if header.last_offset < task.first_dirty_offset:
                continue
            if mapped_offset >= task.first_dirty_offset and (
                offsets.size_bytes >= task.map_bytes_max
            ):
                return mapped_offset
            if header.is_control:
                transactions.is_marker_useless(header, control_type_of(batch, header))
            elif not transactions.is_aborted(header):
                map_batch(offsets, batch, header, task.first_dirty_offset)
            mapped_offset = header.last_offset
        mapped_offset = end_offset - 1  # There may be a gap behind the last batch.
    return mapped_offset


def group_segments(
    sizes: Sequence[tuple[SourceSegment, int, int]],
    *,
    segment_bytes: int,
    segment_index_bytes: int,
    end_offset: int,
) -> list[list[SourceSegment]]:
    """Group neighbours whose content fits one segment, so that small segments do not pile up.

    The input is the segments with the sizes of their two indexes. A group respects
    `segment.bytes`, `segment.index.bytes`, and the 32 bits of an offset within a segment.
    """
    groups: list[list[SourceSegment]] = []
    size = index_size = time_index_size = 0
    for at, (source, source_index_size, source_time_index_size) in enumerate(sizes):
        last_offset = (sizes[at + 1][0].base_offset if at + 1 < len(sizes) else end_offset) - 1
        size += source.size
        index_size += source_index_size
        time_index_size += source_time_index_size
        if (
            groups
            and size <= segment_bytes
            and index_size <= segment_index_bytes
            and time_index_size <= segment_index_bytes
            and (source.size == 0 or last_offset - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        ):
            groups[-1].append(source)
        else:
            groups.append([source])
            size = source.size
            index_size, time_index_size = source_index_size, source_time_index_size
    return groups


def discard_cleaned(directory: str, base_offset: int) -> None:
    """Remove an unused compacted segment, or the remaining files of one."""
    for extension in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX):
        files.unlink_if_there(f"{directory}/{base_offset:020d}{extension}{CLEANED}")


def _groups_of(task: CleaningTask, mapped_offset: int) -> list[list[SourceSegment]]:
    sizes = [
        (source, _file_size(task, source, INDEX), _file_size(task, source, TIME_INDEX))
        for source in task.sources
        if source.base_offset <= mapped_offset
    ]
    return group_segments(
        sizes,
        segment_bytes=task.segment_bytes,
        segment_index_bytes=task.segment_index_bytes,
        end_offset=task.end_offset,
    )


def _clean_group(
    task: CleaningTask,
    group: Sequence[SourceSegment],
    compaction: Compaction,
    throttle: Throttle,
) -> int:
    """Write the remaining records of some segments as one synced segment; return its size."""
    base_offset = group[0].base_offset
    discard_cleaned(task.directory, base_offset)
    try:
        cleaned = Segment.create(
            task.directory,
            base_offset,
            Resources(),
            index_interval_bytes=task.index_interval_bytes,
            index_bytes_max=task.segment_index_bytes,
            suffix=CLEANED,
        )
        output = _Output(cleaned)
        for source in group:
            for header, batch in _batches_of(task, source):
                throttle.spend(header.size)
                kept = compaction.keep(batch, header)
                if kept is not None:
                    throttle.spend(len(kept.data))
                    output.add(kept)
        output.flush()
        for transaction in compaction.take_retained():
            cleaned.note_aborted(transaction)
        cleaned.sync()
        # Records without timestamps are as old as their file: compaction makes none younger.
        modified_ms = files.modified_ms(_path(task, group[-1], LOG))
        files.set_modified_ms(cleaned.path(LOG), modified_ms)
        cleaned.close()
    except BaseException:
        with suppress(OSError):
            discard_cleaned(task.directory, base_offset)
        raise
    return cleaned.size


class _Output:
    """Joins batches into large writes."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._buffer = bytearray()
        self._noted: list[tuple[int, int, int]] = []

    def add(self, kept: KeptBatch) -> None:
        self._buffer += kept.data
        self._noted.append((len(kept.data), kept.last_offset, kept.max_timestamp))
        if len(self._buffer) >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._buffer:
            return
        position = self._segment.write(self._buffer)
        for size, last_offset, max_timestamp in self._noted:
            self._segment.note_batch(position, size, last_offset, max_timestamp)
            position += size
        self._buffer.clear()
        self._noted.clear()


def _batches_of(
    task: CleaningTask, source: SourceSegment
) -> Iterator[tuple[BatchHeader, memoryview]]:
    file = files.open_existing(_path(task, source, LOG))
    for _, header, batch in batches_in(file.fd, 0, source.size):
        yield header, batch


def _end_offset(task: CleaningTask, at: int) -> int:
    """The end offset of a source: the start of the next one."""
    return task.sources[at + 1].base_offset if at + 1 < len(task.sources) else task.end_offset


def _path(task: CleaningTask, source: SourceSegment, extension: str) -> str:
    return f"{task.directory}/{source.base_offset:020d}{extension}"


def _file_size(task: CleaningTask, source: SourceSegment, extension: str) -> int:
    try:
        return files.file_size(_path(task, source, extension))
    except FileNotFoundError:
        return 0  # A missing index is rebuilt on its next use.
