"""The quick way to append: plain batches to a log at work, which is what nearly all appends are.

The fast twin of `appending.append_as_leader`, for batches without a producer id on a topic that
stores batches as they come. It does the same in two steps and makes no object: `read_usual` asks
whether a batch is plain and whole, `append_run` writes several such batches at one stroke.
Whatever is not usual, a wrong batch above all, is left for the long way, untouched;
`tests/unit/storage/test_usual_append.py` runs both over the same batches.
"""

from struct import Struct
from typing import Generic, Protocol, TypeVar

from fastcrc.crc32 import iscsi

from headrace.protocol.batches import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    PLACE,
)
from headrace.protocol.compression import Codec
from headrace.protocol.records import RECORD_SIZE_MIN
from headrace.storage.log import Log
from headrace.storage.segment import RELATIVE_OFFSET_MAX, Segment
from headrace.storage.validation import UsualLimits

NOT_USUAL = -1

_CODECS = frozenset(int(codec) for codec in Codec)
# The header without what nobody asks a plain batch: leader epoch, producer epoch, sequence.
_unpack_header = Struct(">qi4xbIhiqqq6xi").unpack_from
_patch = PLACE.pack_into
_NO_EPOCH = -1


class PlainBatch(Protocol):
    """A batch that `read_usual` found in order, and where it went."""

    records: memoryview
    count: int
    max_timestamp: int
    base_offset: int


_B = TypeVar("_B", bound=PlainBatch)


class Run(Generic[_B]):
    """Plain batches that are written together, with what the log asks of them all."""

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


def read_usual(records: memoryview, limits: UsualLimits, now_ms: int) -> tuple[int, int] | None:
    """How many records a plain batch holds and its latest timestamp; None if it is not plain.

    It asks what `validation.check_batches` asks of a usual batch.
    """
    size = len(records)
    if size < HEADER_SIZE:
        return None
    (
        claimed_offset,
        length,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        count,
    ) = _unpack_header(records)
    size_max, timestamp_after_max_ms, _ = limits
    if (
        length + LOG_OVERHEAD == size <= size_max
        and magic == MAGIC
        and claimed_offset == 0
        and producer_id < 0
        and attributes in _CODECS
        and 0 < count == last_offset_delta + 1
        and (attributes or count * RECORD_SIZE_MIN <= size - HEADER_SIZE)
        and base_timestamp <= max_timestamp <= now_ms + timestamp_after_max_ms
        and iscsi(records[ATTRIBUTES_POSITION:]) == crc
    ):
        return count, max_timestamp
    return None


def append_run(log: Log, run: Run[_B], leader_epoch: int) -> bool:
    """Append plain batches by one write and tell each its offset.

    False, with nothing done, if the log does not take them all, or the disk refused. A disk
    without room for all of them may have room for some, and an error must be told for each:
    whoever is told false appends them one by one, the long way.
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
    """Whether a log is at work, in this epoch, and in a segment with room for so much more."""
    return (
        log.failure is None
        and leader_epoch == log.latest_epoch
        and 0 < segment.size <= log.usual_limits.segment_bytes - size
        and max_timestamp <= log.roll_clock.deadline
        and log.log_end_offset + count - segment.base_offset <= RELATIVE_OFFSET_MAX
        and not segment.indexes_are_full
    )
