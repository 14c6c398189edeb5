"""The quick way to append: a plain batch to a log at work, which is what nearly all appends are.

The fast twin of `appending.append_as_leader`, for a batch without a producer id on a topic that
stores batches as they come. It does the same in one function and makes no object. Whatever is
not usual, a wrong batch above all, is left for the long way, untouched;
`tests/unit/storage/test_usual_append.py` runs both over the same batches.
"""

from fastcrc.crc32 import iscsi

from headrace.protocol.batches import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    PLACE,
)
from headrace.protocol.compression import Codec
from headrace.protocol.records import RECORD_SIZE_MIN
from headrace.storage.log import Log
from headrace.storage.segment import RELATIVE_OFFSET_MAX

NOT_USUAL = -1

_CODECS = frozenset(int(codec) for codec in Codec)
_unpack_header = HEADER.unpack_from
_patch = PLACE.pack_into


def append_usual(log: Log, records: memoryview, leader_epoch: int, now_ms: int) -> int:
    """Append one plain batch and return its base offset, or `NOT_USUAL` with nothing done."""
    segment = log.writable
    size = len(records)
    if segment is None or size < HEADER_SIZE:
        return NOT_USUAL
    (
        claimed_offset,
        length,
        claimed_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        _,
        _,
        count,
    ) = _unpack_header(records)
    size_max, timestamp_after_max_ms, segment_bytes = log.usual_limits
    base_offset = log.log_end_offset
    last_offset = base_offset + last_offset_delta
    position = segment.size
    if not (
        # The batch: what `validation.check_batches` asks of a usual one.
        length + LOG_OVERHEAD == size <= size_max
        and magic == MAGIC
        and claimed_offset == 0
        and producer_id < 0
        and attributes in _CODECS
        and 0 < count == last_offset_delta + 1
        and (attributes or count * RECORD_SIZE_MIN <= size - HEADER_SIZE)
        and base_timestamp <= max_timestamp <= now_ms + timestamp_after_max_ms
        # The log: at work, in this epoch, and in the middle of a segment.
        and log.failure is None
        and leader_epoch == log.latest_epoch
        and 0 < position <= segment_bytes - size
        and max_timestamp <= log.roll_clock.deadline
        and last_offset - segment.base_offset <= RELATIVE_OFFSET_MAX
        and not segment.indexes_are_full
        and iscsi(records[ATTRIBUTES_POSITION:]) == crc
    ):
        return NOT_USUAL
    _patch(records, 0, base_offset, length, leader_epoch)
    try:
        segment.write(records)
    except OSError as error:
        # As it came: whoever tries again, or tells the client, must find the client's batch.
        _patch(records, 0, claimed_offset, length, claimed_epoch)
        raise log.storage_error(error) from error
    segment.note_batch(position, size, last_offset, max_timestamp)
    log.log_end_offset = last_offset + 1
    return base_offset
