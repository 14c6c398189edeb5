"""Appending what the broker itself has built: coordinators' batches need no examination.

The quick way of `appending.append_as_leader` for batches that this very process encoded a moment
ago, plain and without a transaction. What is not in the middle of a segment, or belongs to a
producer, goes the long way.
"""

from headrace.protocol.batches import LOG_OVERHEAD, PLACE
from headrace.storage.appending import append_as_leader
from headrace.storage.log import Log
from headrace.storage.producer_state import Origin
from headrace.storage.segment import RELATIVE_OFFSET_MAX


def append_built(
    log: Log,
    batch: bytearray,
    count: int,
    leader_epoch: int,
    now_ms: int,
    *,
    has_producer: bool = False,
) -> int:
    """Append one batch of `count` records, all of this moment; returns its base offset."""
    segment = log.writable
    size = len(batch)
    base_offset = log.log_end_offset
    last_offset = base_offset + count - 1
    if (
        segment is None
        or log.failure is not None
        or has_producer
        or leader_epoch != log.latest_epoch
        or size > log.config.max_message_bytes
        or not 0 < segment.size <= log.config.segment_bytes - size
        or now_ms > log.roll_clock.deadline
        or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        or segment.indexes_are_full
    ):
        info = append_as_leader(log, memoryview(batch), leader_epoch, now_ms, Origin.COORDINATOR)
        return info.base_offset
    PLACE.pack_into(batch, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
    position = segment.size
    try:
        segment.write(batch)
    except OSError as error:
        raise log.storage_error(error) from error
    segment.note_batch(position, size, last_offset, now_ms)
    log.log_end_offset = last_offset + 1
    return base_offset
