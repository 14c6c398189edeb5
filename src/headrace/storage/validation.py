"""What a batch must be before a log takes it: Kafka's rules, in Kafka's order.

A partition of a produce request holds exactly one batch. Usually everything that matters is in
its header, so `check_batches` unpacks that once, compares, checks the CRC and is done; records
are not looked at. Whatever is not usual goes to `_examine`, which names the error or rewrites
the batch: another codec, the broker's clock as timestamp, a topic whose records need keys.

The header's own word is taken for the count and the latest timestamp of records that nobody
looks at. Kafka walks through all records of all batches to make sure of them; a client that
lies here spoils its own batch only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from fastcrc.crc32 import iscsi

from headrace.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from headrace.protocol.batches import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    assemble_batch,
    block_of,
    check_crc,
    read_header,
    seal,
)
from headrace.protocol.compression import CODEC_NAMES, Codec
from headrace.protocol.records import RECORD_SIZE_MIN, scan_records, value_and_headers
from headrace.storage.config import LogConfig, RecordRule

RecordError = tuple[int, str]
"""The index of a record in its batch, and what is wrong with it."""

_FOREVER = (1 << 63) - 1
_COUNT_POSITION = HEADER_SIZE - 4
_HEAVY_BYTES = 64 * 1024
_HEAVY_COUNT = 1000
_LEGACY_SIZE_MIN = 14
"""The smallest length that a batch of any format has after its length field."""
_USUAL_ATTRIBUTES = frozenset((*Codec, *(codec | TRANSACTIONAL for codec in Codec)))

_unpack_header = HEADER.unpack_from


class RecordsRefused(InvalidRecord):
    """Some records of a batch may not be stored; the response can name each."""

    def __init__(self, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class TimestampsRefused(InvalidTimestamp):
    """Some records are too old or too far ahead; the response can name each."""

    def __init__(self, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


def check_batches(
    records: memoryview, config: LogConfig, now_ms: int, *, from_client: bool = True
) -> tuple[memoryview, BatchHeader]:
    """The bytes to append and the header of their one batch, or the error for the client.

    The bytes are `records` itself, perhaps patched in place, unless the topic's codec made new
    ones necessary; they can be written to. Offset and leader epoch are for the log to patch.
    """
    size = len(records)
    if size >= HEADER_SIZE and from_client and takes_usual_batches(config):
        (
            base_offset,
            length,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _unpack_header(records)
        if (
            length + LOG_OVERHEAD == size
            and magic == MAGIC
            and base_offset == 0
            and size <= config.max_message_bytes
            and size <= config.segment_bytes
            and attributes in _USUAL_ATTRIBUTES
            and 0 < count == last_offset_delta + 1
            and (attributes & CODEC_MASK or count * RECORD_SIZE_MIN <= size - HEADER_SIZE)
            and base_timestamp <= max_timestamp <= now_ms + config.message_timestamp_after_max_ms
            and (base_sequence >= 0 or producer_id < 0)
            and iscsi(records[ATTRIBUTES_POSITION:]) == crc
        ):
            return records, BatchHeader(
                0,
                size,
                leader_epoch,
                MAGIC,
                crc,
                attributes,
                last_offset_delta,
                base_timestamp,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                count,
            )
    return _examine(records, config, now_ms, from_client=from_client)


def takes_usual_batches(config: LogConfig) -> bool:
    """Whether this topic stores batches as they come, on the word of their headers."""
    return (
        config.compression_type == "producer"
        and config.message_timestamp_type == "CreateTime"
        and config.message_timestamp_before_max_ms == _FOREVER
        and not config.is_compacted
        and not config.record_rules
    )


class CheckedBatch(NamedTuple):
    """A batch that was checked for a config, and counts for no other."""

    config: LogConfig
    records: memoryview
    header: BatchHeader


def check_for(records: memoryview, config: LogConfig, now_ms: int) -> CheckedBatch:
    """Check a client's batch ahead of its append, in whichever thread."""
    return CheckedBatch(config, *check_batches(records, config, now_ms))


def is_heavy(records: memoryview) -> bool:
    """Whether looking at each record of a batch would take more than a few milliseconds."""
    if len(records) < HEADER_SIZE:
        return False
    count = int.from_bytes(records[_COUNT_POSITION:HEADER_SIZE], "big", signed=True)
    return len(records) > _HEAVY_BYTES or count > _HEAVY_COUNT


class UsualLimits(NamedTuple):
    """What a usual batch is measured against, worked out once for a topic's config."""

    size_bytes_max: int
    """0 where batches are not stored on the word of their headers, so that none is usual."""

    timestamp_after_max_ms: int
    segment_bytes: int


def usual_limits(config: LogConfig) -> UsualLimits:
    size_max = min(config.max_message_bytes, config.segment_bytes)
    return UsualLimits(
        size_max if takes_usual_batches(config) else 0,
        config.message_timestamp_after_max_ms,
        config.segment_bytes,
    )


def check_replicated(records: memoryview, next_offset: int) -> list[BatchHeader]:
    """The headers of batches that a leader has accepted: only damage and order are checked."""
    found = []
    position = 0
    while position < len(records):
        header = read_header(records, position)
        if header.size > len(records) - position:
            raise CorruptMessage(f"the batch at position {position} is cut off")
        check_crc(records, position, header.size)
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise InvalidRecord(
                f"a batch with the offsets {header.base_offset} to {header.last_offset} cannot "
                f"follow where {next_offset} is the next offset"
            )
        next_offset = header.next_offset
        position += header.size
        found.append(header)
    return found


def _examine(
    records: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> tuple[memoryview, BatchHeader]:
    """The careful way: find the first rule that is broken, or make the batch fit the topic."""
    records = _only_batch(records)
    header = read_header(records)
    if from_client and header.base_offset != 0:
        raise InvalidRecord(f"a produced batch has base offset {header.base_offset}, not 0")
    _check_size(header.size, config)
    check_crc(records, 0, header.size)
    if from_client:
        _check_claims(header)
    if header.codec > Codec.ZSTD:
        raise UnsupportedCompressionType(f"there is no compression codec {header.codec}")
    batch = _fit_to_topic(records, header, config, now_ms)
    header = read_header(batch)
    _check_size(header.size, config)
    if header.size > config.segment_bytes:
        raise RecordListTooLarge(
            f"the batch has {header.size} bytes, a segment of this topic only "
            f"{config.segment_bytes} (segment.bytes)"
        )
    return batch, header


def _only_batch(records: memoryview) -> memoryview:
    """The one batch of a produced partition, without a cut-off batch that may follow it."""
    size = _next_batch_size(records)
    if size is None:
        raise InvalidRecord("a produced partition needs a whole record batch")
    if records[MAGIC_POSITION] != MAGIC:
        raise InvalidRecord(
            f"the batch has magic {records[MAGIC_POSITION]}; this broker takes magic 2 only"
        )
    if _next_batch_size(records[size:]) is not None:
        raise InvalidRecord("a produced partition may hold only one record batch")
    return records[:size]


def _next_batch_size(records: memoryview) -> int | None:
    """The size of the first batch, None if there is no whole one."""
    if len(records) < LOG_OVERHEAD:
        return None
    length = int.from_bytes(records[8:LOG_OVERHEAD], "big", signed=True)
    if length < _LEGACY_SIZE_MIN:
        raise CorruptMessage(f"a batch claims the impossible length {length}")
    if len(records) <= MAGIC_POSITION:
        return None
    if records[MAGIC_POSITION] > MAGIC:
        raise CorruptMessage(f"a batch has the unknown magic {records[MAGIC_POSITION]}")
    size = length + LOG_OVERHEAD
    return size if size <= len(records) else None


def _check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise MessageTooLarge(
            f"the batch has {size} bytes, the topic takes {config.max_message_bytes} "
            "(max.message.bytes)"
        )


def _check_claims(header: BatchHeader) -> None:
    """Refuse headers that no honest client writes."""
    if header.last_offset_delta < 0 or header.count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"the batch claims {header.count} records and a last offset delta of "
            f"{header.last_offset_delta}"
        )
    if header.is_control:
        raise InvalidRecord("control records are for brokers to write, not for clients")
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecord(
            f"the batch of producer {header.producer_id} has the sequence {header.base_sequence}"
        )


def _fit_to_topic(
    records: memoryview, header: BatchHeader, config: LogConfig, now_ms: int
) -> memoryview:
    """Look at the records if the topic asks for it, and rewrite what the topic decides."""
    target = _target_codec(header, config)
    fitted = msgspec.structs.replace(header)
    block = None
    if _must_look_inside(header, config, target, now_ms):
        try:
            block = block_of(records, 0, header)
            fitted.max_timestamp = _check_records(block, header, config, now_ms)
            if config.record_rules and not header.is_control:
                _check_payloads(block, header.count, config.record_rules)
        except CorruptMessage as error:
            # The CRC is right, so sending it again would not help; corruption invites a retry.
            raise InvalidRecord(str(error)) from error
    by_broker = config.message_timestamp_type == "LogAppendTime"
    if header.uses_log_append_time and (by_broker or header.max_timestamp == NO_TIMESTAMP):
        raise InvalidTimestamp("a producer may not claim the timestamp type LogAppendTime")
    if by_broker:
        fitted.attributes |= LOG_APPEND_TIME
        fitted.max_timestamp = now_ms
    else:
        fitted.attributes &= ~LOG_APPEND_TIME
    if block is not None and target != header.codec:
        fitted.attributes = fitted.attributes & ~CODEC_MASK | target
        return memoryview(assemble_batch(fitted, block, _level(target, config)))
    if fitted == header:
        return records
    return _patched(records, fitted)


def _target_codec(header: BatchHeader, config: LogConfig) -> int:
    if config.compression_type == "producer" or header.is_control:
        return header.codec  # Transaction markers are tiny and stay plain.
    if config.compression_type == "uncompressed":
        return Codec.NONE
    return CODEC_NAMES[config.compression_type]


def _level(codec: int, config: LogConfig) -> int | None:
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
    return None


def _must_look_inside(header: BatchHeader, config: LogConfig, target: int, now_ms: int) -> bool:
    """Whether the header does not say enough, or says what only the records can excuse."""
    return (
        target != header.codec
        or config.is_compacted
        or config.record_rules != ()
        or config.message_timestamp_before_max_ms != _FOREVER
        or not header.base_timestamp <= header.max_timestamp <= _timestamp_bounds(config, now_ms)[1]
        or (not header.codec and header.count * RECORD_SIZE_MIN > header.size - HEADER_SIZE)
    )


def _check_records(block: bytes, header: BatchHeader, config: LogConfig, now_ms: int) -> int:
    """Refuse the batch if any of its records may not be stored; return the latest timestamp."""
    oldest, newest = _timestamp_bounds(config, now_ms)
    needs_key = config.is_compacted
    max_timestamp = NO_TIMESTAMP
    out_of_range: list[RecordError] = []
    without_key: list[RecordError] = []
    for index, (_, _, delta, offset_delta, key, _) in enumerate(scan_records(block, header.count)):
        if offset_delta != index:
            raise InvalidRecord(f"record {index} of the batch has offset delta {offset_delta}")
        timestamp = header.base_timestamp + delta
        if needs_key and key is None:
            without_key.append((index, "a record of a compacted topic needs a key"))
        elif timestamp != NO_TIMESTAMP and not oldest <= timestamp <= newest:
            out_of_range.append(
                (index, f"its timestamp {timestamp} is not in [{oldest}, {newest}]")
            )
        max_timestamp = max(max_timestamp, timestamp)
    if out_of_range:
        raise TimestampsRefused(
            f"{len(out_of_range)} records have a timestamp that the topic does not take "
            "(message.timestamp.before.max.ms, message.timestamp.after.max.ms)",
            tuple(without_key + out_of_range),
        )
    if without_key:
        raise RecordsRefused(
            f"{len(without_key)} records have no key, which a compacted topic needs",
            tuple(without_key),
        )
    return max_timestamp


def _check_payloads(block: bytes, count: int, rules: Sequence[RecordRule]) -> None:
    """Refuse the batch if a rule of the topic has a complaint about any of its records."""
    refused: list[RecordError] = []
    for index, (start, end, _, _, key, _) in enumerate(scan_records(block, count)):
        value, headers = value_and_headers(block, start, end)
        for rule in rules:
            complaint = rule.complaint(key if rule.part == "key" else value, headers)
            if complaint is not None:
                refused.append((index, complaint))
                break
    if refused:
        raise RecordsRefused(
            f"{len(refused)} of {count} records are not as the topic asks; record "
            f"{refused[0][0]}: {refused[0][1]}",
            tuple(refused),
        )


def _timestamp_bounds(config: LogConfig, now_ms: int) -> tuple[int, int]:
    """Which timestamps of clients are taken; any, where the broker's clock replaces them."""
    if config.message_timestamp_type == "LogAppendTime":
        return -_FOREVER, _FOREVER
    return (
        now_ms - config.message_timestamp_before_max_ms,
        min(now_ms + config.message_timestamp_after_max_ms, _FOREVER),
    )


def _patched(records: memoryview, header: BatchHeader) -> memoryview:
    """Write changed header fields into the batch, where it lies if that is allowed."""
    batch = memoryview(bytearray(records)) if records.readonly else records
    fields = list(msgspec.structs.astuple(header))
    fields[1] -= LOG_OVERHEAD
    HEADER.pack_into(batch, 0, *fields)
    seal(batch)
    return batch
