"""Appending to a log: as its leader, which assigns offsets, or with the offsets of the leader.

An append costs one header check, one write and a few integers. A failed append leaves no bytes
behind. Nearly all appends of clients are plain and use the fast path of `usual_append.py`, which
must behave as this module does.
"""

from collections.abc import Iterator, Sequence

import msgspec

from headrace.errors import RecordListTooLarge
from headrace.protocol.batches import (
    CONTROL,
    HEADER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    PLACE,
    BatchHeader,
)
from headrace.storage.log import Log
from headrace.storage.producer_replay import check_coordinated, replay_marker
from headrace.storage.producer_state import NOT_VERIFIED, Origin, ProducerStates, RememberedBatch
from headrace.storage.segment import RELATIVE_OFFSET_MAX, ReplicatedBatch, Segment
from headrace.storage.validation import (
    EPOCH_MAX,
    CheckedBatch,
    OutOfPlace,
    check_batches,
    check_replicated,
)

# Looked up once, because each lookup would cost time in every append.
_CLIENT = Origin.CLIENT
_patch = PLACE.pack_into
_unpack_header = HEADER.unpack_from


class AppendInfo(msgspec.Struct, frozen=True, gc=False):
    """The outcome of an append for the producer."""

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

    The batch is checked, its offset and epoch are patched in place, and one write appends it to
    the file. A batch that begins or ends a transaction carries its coordinator's version. A batch
    that was checked before is checked again only if the topic's config has changed.
    """
    if log.failure is not None:
        log.refuse()
    config = log.config
    if checked is not None and checked.config == config:
        _, records, header = checked
    else:
        records, header = check_batches(
            records, config, now_ms, log.usual_limits, from_client=origin is _CLIENT
        )
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


def append_built(
    log: Log,
    batch: bytearray,
    count: int,
    leader_epoch: int,
    now_ms: int,
    *,
    has_producer: bool = False,
) -> int:
    """Append a coordinator's batch of `count` records with one time; returns its base offset.

    This process has just encoded the batch, so it needs no validation. A batch that needs a new
    segment, or belongs to a producer, uses the general path.
    """
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
    _patch(batch, 0, base_offset, size - LOG_OVERHEAD, leader_epoch)
    position = segment.size
    try:
        segment.write(batch)
    except OSError as error:
        raise log.storage_error(error) from error
    segment.note_batch(position, size, last_offset, now_ms)
    log.log_end_offset = last_offset + 1
    return base_offset


def append_as_is(
    log: Log, records: memoryview, now_ms: int = 0, leader_epoch_max: int = EPOCH_MAX
) -> int:
    """Append batches that have their offsets and epochs; return the size of what was appended.

    They come from a leader, or belong to the raft log. A cut-off batch at the end is left out, and
    so are batches of a newer epoch than `leader_epoch_max`, with all that follow. Batches that fit
    a segment are appended together, by one write, or on an error not at all.
    """
    if log.failure is not None:
        log.refuse()
    batches, size = check_replicated(records, log.log_end_offset, leader_epoch_max)
    if not batches:
        return 0
    if size <= log.config.segment_bytes and batches[0][2] == batches[-1][2]:
        _append_piece(log, records[:size], batches, now_ms)
        return size
    start = 0
    for piece in _pieces(batches, log.config.segment_bytes):
        end = start + sum(batch[1] + LOG_OVERHEAD for batch in piece)
        _append_piece(log, records[start:end], piece, now_ms)
        start = end
    return size


def _pieces(
    batches: Sequence[ReplicatedBatch], size_max: int
) -> Iterator[Sequence[ReplicatedBatch]]:
    """Split batches so that each piece fits a segment and has one epoch.

    A single batch may be larger: the leader took it when its segments were, and without it this
    log could never follow.
    """
    first, size = 0, 0
    for at, batch in enumerate(batches):
        batch_size = batch[1] + LOG_OVERHEAD
        if at > first and (size + batch_size > size_max or batch[2] != batches[first][2]):
            yield batches[first:at]
            first, size = at, 0
        size += batch_size
    yield batches[first:]


def _append_piece(
    log: Log, records: memoryview, batches: Sequence[ReplicatedBatch], now_ms: int
) -> None:
    """Append batches of one epoch to one segment.

    The epoch is entered before the write, as by a leader. An epoch without records does no harm:
    the next comparison with a leader corrects it.
    """
    base_offset, _, leader_epoch, _, _, _, _, first_timestamp, _ = batches[0]
    last_offset = batches[-1][0] + batches[-1][6]
    # Before the write: loading the producers afterwards would replay these batches twice.
    has_producers = any(batch[8] >= 0 for batch in batches)
    producers = (log.loaded_producers or log.producers) if has_producers else None
    segment = log.writable or log.warm(now_ms)
    if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX or (
        segment.size > 0
        and (
            segment.size + len(records) > log.config.segment_bytes
            or segment.indexes_are_full
            # Batches that are together not longer than the interval need one entry at most.
            or (
                len(records) > segment.index_interval_bytes
                and not segment.has_index_room_for(len(batches))
            )
            or log.roll_clock.is_over(max(batch[7] for batch in batches), now_ms, log.config)
        )
    ):
        segment = log.roll()
        if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            raise OutOfPlace(base_offset, last_offset, log.log_end_offset)
    if leader_epoch != log.latest_epoch:
        log.assign_epoch(leader_epoch, base_offset)
    try:
        position = segment.write(records)
    except OSError as error:
        raise log.storage_error(error) from error
    if position == 0:
        log.roll_clock.start(first_timestamp, now_ms, log.config)
    segment.note_replicated(position, batches)
    log.log_end_offset = last_offset + 1
    if producers is not None:
        _replay(producers, segment, records, batches)


def _replay(
    producers: ProducerStates,
    segment: Segment,
    records: memoryview,
    batches: Sequence[ReplicatedBatch],
) -> None:
    position = 0
    for batch in batches:
        size = batch[1] + LOG_OVERHEAD
        if batch[8] >= 0:
            header = BatchHeader(*_unpack_header(records, position))
            header.size = size
            if header.attributes & CONTROL:
                marker = records[position : position + size]
                replay_marker(producers, segment, marker, header, header.base_offset)
            else:
                producers.replay(header, header.base_offset)
        position += size


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
