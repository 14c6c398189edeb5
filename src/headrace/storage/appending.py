"""Appending to a log: as its leader, who gives batches their offsets, or as they were written.

An append costs one header check, one write and a few integers. Whatever goes wrong, nothing of
a batch stays behind. Nearly all appends of clients are plain ones and take the quick way of
`usual_append.py`; what it does is defined here.
"""

import msgspec

from headrace.errors import RecordListTooLarge
from headrace.protocol.batches import CONTROL, LOG_APPEND_TIME, LOG_OVERHEAD, PLACE
from headrace.storage.log import Log
from headrace.storage.producer_replay import check_coordinated, replay_marker
from headrace.storage.producer_state import NOT_VERIFIED, Origin, RememberedBatch
from headrace.storage.segment import RELATIVE_OFFSET_MAX, Segment
from headrace.storage.validation import CheckedBatch, check_batches, check_replicated

# Looked up once, for each look costs an append.
_CLIENT = Origin.CLIENT
_patch = PLACE.pack_into


class AppendInfo(msgspec.Struct, frozen=True, gc=False):
    """What a producer is told of its batches."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


def append_as_leader(
    log: Log,
    records: memoryview,
    leader_epoch: int,
    now_ms: int,
    origin: Origin = _CLIENT,
    transaction_version: int = NOT_VERIFIED,
    checked: CheckedBatch | None = None,
) -> AppendInfo:
    """Append one batch and give its records the next offsets.

    The batch is checked, its offset and epoch are patched where it lies, and one write puts it
    into the file. A batch that begins a transaction, or ends one, comes with the version that
    its coordinator said. One that was checked before is not checked again, unless the topic's
    config has changed since.
    """
    if log.failure is not None:
        log.refuse()
    config = log.config
    if checked is not None and checked.config == config:
        _, records, header = checked
    else:
        records, header = check_batches(records, config, now_ms, from_client=origin is _CLIENT)
    base_offset = log.log_end_offset
    last_offset = base_offset + header.last_offset_delta
    producers = None
    if header.producer_id >= 0:
        producers = log.loaded_producers or log.producers
        if origin is not _CLIENT:
            check_coordinated(producers, records, header, transaction_version)
        elif (duplicate := producers.check(header, transaction_version)) is not None:
            return _answer_duplicate(log, duplicate)
    segment = log.writable or log.warm(now_ms)
    size = header.size
    max_timestamp = header.max_timestamp
    if (
        segment.size + size > config.segment_bytes
        or max_timestamp > log.roll_clock.deadline
        or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        or segment.indexes_are_full
    ):
        segment = _roll_if_due(log, segment, size, max_timestamp, last_offset, now_ms)
    if leader_epoch != log.latest_epoch:
        log.begin_epoch(leader_epoch)
    _patch(records, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
    try:
        position = segment.write(records)
    except OSError as error:
        raise log.storage_error(error) from error
    segment.note_batch(position, size, last_offset, max_timestamp)
    log.log_end_offset = last_offset + 1
    if position == 0:
        log.roll_clock.start(max_timestamp, now_ms, config)
    if producers is not None:
        if header.attributes & CONTROL:
            replay_marker(producers, segment, records, header, base_offset)
        else:
            producers.replay(header, base_offset)
    return AppendInfo(
        base_offset,
        last_offset,
        max_timestamp if header.attributes & LOG_APPEND_TIME else -1,
        log.log_start_offset,
    )


def append_as_is(log: Log, records: memoryview, now_ms: int = 0) -> None:
    """Append batches that have their offsets and epochs: from a leader, or of the raft log."""
    if log.failure is not None:
        log.refuse()
    headers = check_replicated(records, log.log_end_offset)
    if not headers:
        return
    # Before the write: what loads the producers now must not meet these batches already.
    producers = log.producers
    segment = log.writable or log.warm(now_ms)
    max_timestamp = max(header.max_timestamp for header in headers)
    segment = _roll_if_due(
        log, segment, len(records), max_timestamp, headers[-1].last_offset, now_ms
    )
    try:
        position = segment.write(records)
    except OSError as error:
        raise log.storage_error(error) from error
    if position == 0:
        log.roll_clock.start(headers[0].max_timestamp, now_ms, log.config)
    start = 0
    for header in headers:
        segment.note_batch(position + start, header.size, header.last_offset, header.max_timestamp)
        if header.leader_epoch != log.latest_epoch:
            log.assign_epoch(header.leader_epoch, header.base_offset)
        log.log_end_offset = header.next_offset
        if header.producer_id >= 0:
            if header.is_control:
                batch = records[start : start + header.size]
                replay_marker(producers, segment, batch, header, header.base_offset)
            else:
                producers.replay(header, header.base_offset)
        start += header.size


def _roll_if_due(
    log: Log, segment: Segment, size: int, max_timestamp: int, last_offset: int, now_ms: int
) -> Segment:
    config = log.config
    if size > config.segment_bytes:
        raise RecordListTooLarge(
            f"{size} bytes do not fit a segment of {log.topic_partition}, "
            f"which may have {config.segment_bytes} (segment.bytes)"
        )
    if (
        (segment.size > 0 and log.roll_clock.is_over(max_timestamp, now_ms, config))
        or segment.size + size > config.segment_bytes
        or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        or segment.indexes_are_full
    ):
        return log.roll()
    return segment


def _answer_duplicate(log: Log, duplicate: RememberedBatch) -> AppendInfo:
    uses_append_time = log.config.message_timestamp_type == "LogAppendTime"
    return AppendInfo(
        duplicate.first_offset,
        duplicate.last_offset,
        duplicate.timestamp if uses_append_time else -1,
        log.log_start_offset,
        True,
    )
