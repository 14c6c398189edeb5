"""The quick way to append: plain batches to a log at work, which is what nearly all appends are.

The fast twin of `appending.append_as_leader`, for batches without a producer id on a topic that
stores batches as they come. It does the same in two steps and makes no object: `read_usual` asks
whether a batch is plain and whole, `append_run` writes several such batches at one stroke.
Whatever is not usual, a wrong batch above all, is left for the long way, untouched;
`tests/unit/storage/test_usual_append.py` runs both over the same batches.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Protocol

import msgspec
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
from headrace.storage.segment import RELATIVE_OFFSET_MAX
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


class UsualBatch(msgspec.Struct, gc=False):
    """The plain batch of an append of its own."""

    records: memoryview
    count: int
    max_timestamp: int
    base_offset: int = NOT_USUAL


def append_usual(log: Log, records: memoryview, leader_epoch: int, now_ms: int) -> int:
    """Append one plain batch and return its base offset, or `NOT_USUAL` with nothing done."""
    found = read_usual(records, log.usual_limits, now_ms)
    if found is None:
        return NOT_USUAL
    batch = UsualBatch(records, *found)
    return batch.base_offset if append_run(log, (batch,), leader_epoch) else NOT_USUAL


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


def append_run(log: Log, run: Sequence[PlainBatch], leader_epoch: int) -> bool:
    """Append plain batches by one write and tell each its offset.

    False, with nothing done, if the log is not at work in the middle of a segment and in this
    epoch, or the disk refused. A disk without room for all of them may have room for some, and
    an error must be told for each: whoever is told false appends them one by one, the long way.
    """
    segment = log.writable
    if segment is None or log.failure is not None or leader_epoch != log.latest_epoch:
        return False
    pieces = [batch.records for batch in run]
    size = sum(map(len, pieces))
    position = segment.size
    offset = log.log_end_offset
    end_offset = offset + sum([batch.count for batch in run])
    if not (
        0 < position <= log.usual_limits.segment_bytes - size
        and max([batch.max_timestamp for batch in run]) <= log.roll_clock.deadline
        and end_offset - segment.base_offset <= RELATIVE_OFFSET_MAX
        and not segment.indexes_are_full
        # A run that is not longer than the interval adds one entry at most.
        and (size <= segment.index_interval_bytes or segment.has_index_room_for(len(run)))
    ):
        return False
    for batch in run:
        records = batch.records
        batch.base_offset = offset
        _patch(records, 0, offset, len(records) - LOG_OVERHEAD, leader_epoch)
        offset += batch.count
    try:
        segment.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
    except OSError:
        for records in pieces:
            _patch(records, 0, 0, len(records) - LOG_OVERHEAD, _NO_EPOCH)
        return False
    segment.note_run(position, run)
    log.log_end_offset = end_offset
    return True
