"""The fast path of appends: plain batches to an open log, which covers nearly all appends.

The fast twin of `appending.append_as_leader`, for batches without a producer id on a topic that
stores batches unchanged. `validation.read_usual` finds plain batches, and `append_run` writes
several of them at once. All other batches, including invalid ones, are left untouched for the
general path; `tests/unit/storage/test_usual_append.py` runs both over the same batches.
"""

from typing import Generic, TypeVar

from headrace.protocol.batches import LOG_OVERHEAD, PLACE
from headrace.storage.log import Log
from headrace.storage.segment import RELATIVE_OFFSET_MAX, PlainBatch, Segment
from headrace.storage.validation import read_usual

NOT_USUAL = -1

_patch = PLACE.pack_into
_NO_EPOCH = -1


_B = TypeVar("_B", bound=PlainBatch)


class Run(Generic[_B]):
    """Plain batches that are written together, with their common limits."""

    __slots__ = ("batches", "count", "max_timestamp", "size_bytes")

    def __init__(self, first: _B) -> None:
        self.batches = [first]
        self.count = first.count
        self.max_timestamp = first.max_timestamp
        self.size_bytes = len(first.records)

    def add(self, batch: _B) -> None:
        self.batches.append(batch)
        self.count += batch.count
        self.size_bytes += len(batch.records)
        if batch.max_timestamp > self.max_timestamp:
            self.max_timestamp = batch.max_timestamp


def append_usual(log: Log, records: memoryview, leader_epoch: int, now_ms: int) -> int:
    """Append one plain batch and return its base offset, or `NOT_USUAL` with nothing done."""
    found = read_usual(records, log.usual_limits, now_ms)
    segment = log.writable
    if found is None or segment is None:
        return NOT_USUAL
    count, max_timestamp = found
    size = len(records)
    if not _takes(log, segment, leader_epoch, size, count, max_timestamp):
        return NOT_USUAL
    offset = log.log_end_offset
    _patch(records, 0, offset, size - LOG_OVERHEAD, leader_epoch)
    try:
        position = segment.write(records)
    except OSError:
        _patch(records, 0, 0, size - LOG_OVERHEAD, _NO_EPOCH)
        return NOT_USUAL
    segment.note_batch(position, size, offset + count - 1, max_timestamp)
    log.log_end_offset = offset + count
    return offset


def append_run(log: Log, run: Run[_B], leader_epoch: int) -> bool:
    """Append plain batches by one write and assign their offsets.

    False, without any change, if the log cannot take all of them or the disk fails. A disk
    without room for all batches may have room for some, and each needs its own error: the caller
    then appends them one by one by the general path.
    """
    segment = log.writable
    batches = run.batches
    size = run.size_bytes
    if (
        segment is None
        or not _takes(log, segment, leader_epoch, size, run.count, run.max_timestamp)
        # Batches that are together not longer than the interval need one index entry at most.
        or (size > segment.index_interval_bytes and not segment.has_index_room_for(len(batches)))
    ):
        return False
    offset = log.log_end_offset
    for batch in batches:
        records = batch.records
        batch.base_offset = offset
        _patch(records, 0, offset, len(records) - LOG_OVERHEAD, leader_epoch)
        offset += batch.count
    try:
        position = segment.write(
            b"".join([batch.records for batch in batches])
            if len(batches) > 1
            else batches[0].records
        )
    except OSError:
        for batch in batches:
            _patch(batch.records, 0, 0, len(batch.records) - LOG_OVERHEAD, _NO_EPOCH)
        return False
    segment.note_run(position, batches)
    log.log_end_offset = offset
    return True


def _takes(
    log: Log, segment: Segment, leader_epoch: int, size: int, count: int, max_timestamp: int
) -> bool:
    """Return whether the log is open, in this epoch, with room in the active segment."""
    return (
        log.failure is None
        and leader_epoch == log.latest_epoch
        and 0 < segment.size <= log.usual_limits.segment_bytes - size
        and max_timestamp <= log.roll_clock.deadline
        and log.log_end_offset + count - segment.base_offset <= RELATIVE_OFFSET_MAX
        and not segment.indexes_are_full
    )
