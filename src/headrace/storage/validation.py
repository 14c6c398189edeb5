"""Validation of batches before an append: Kafka's rules, in Kafka's order.

A partition of a produce request holds exactly one batch. Usually its header suffices, so
`check_batches` unpacks the header once, compares, and checks the CRC; records are not read. All
other batches go to `_examine`, which raises the error or rewrites the batch: another codec, the
broker's clock as timestamp, a topic whose records need keys.

Count and latest timestamp are taken from the header if the records are not read. Kafka reads all
records of all batches to verify them; a client with a wrong header damages only its own batch.
"""

from collections.abc import Sequence
from struct import Struct
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
from headrace.storage.segment import ReplicatedBatch

RecordError = tuple[int, str]
"""The index of a record in its batch, and its error."""

_FOREVER = (1 << 63) - 1
_COUNT_POSITION = HEADER_SIZE - 4
_HEAVY_BYTES = 64 * 1024
_HEAVY_COUNT = 1000
_LEGACY_SIZE_MIN = 14
"""The smallest length after the length field, in any format of batches."""
PLAIN = frozenset(int(codec) for codec in Codec)
"""Attributes of a plain batch, which is usual and has no producer id."""

_USUAL = PLAIN | {codec | TRANSACTIONAL for codec in PLAIN}

_unpack_header = HEADER.unpack_from
# The header without the fields that are not checked: leader epoch and producer epoch.
_unpack_checked = Struct(">qi4xbIhiqqq2xii").unpack_from
# The header without the fields that an append of a leader's batches does not need.
_unpack_replicated = Struct(">qiibIhi8xqq10x").unpack_from

EPOCH_MAX = (1 << 31) - 1


class RecordsRefused(InvalidRecord):
    """Some records of a batch may not be stored; the response can name each."""

    def __init__(self, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class OutOfPlace(InvalidRecord):
    """A leader's batch does not follow the end of the log."""

    def __init__(self, base_offset: int, last_offset: int, next_offset: int) -> None:
        super().__init__(
            f"a batch with the offsets {base_offset} to {last_offset} cannot "
            f"follow where {next_offset} is the next offset"
        )
        self.base_offset = base_offset
        self.last_offset = last_offset


class TimestampsRefused(InvalidTimestamp):
    """Some records are too old or too far ahead; the response can name each."""

    def __init__(self, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


def check_batches(
    records: memoryview,
    config: LogConfig,
    now_ms: int,
    limits: "UsualLimits | None" = None,
    *,
    from_client: bool = True,
) -> tuple[memoryview, BatchHeader]:
    """Return the bytes to append and the header of their one batch, or raise the client's error.

    The bytes are `records` itself, perhaps patched in place, unless the topic's codec requires new
    ones; they are writable. The log patches offset and leader epoch. `limits` are those of the
    config, if the caller has computed them.
    """
    if from_client and read_usual(records, limits or usual_limits(config), now_ms, _USUAL):
        header = BatchHeader(*_unpack_header(records))
        header.size += LOG_OVERHEAD
        return records, header
    return _examine(records, config, now_ms, from_client=from_client)


def read_usual(
    records: memoryview, limits: "UsualLimits", now_ms: int, allowed: frozenset[int] = PLAIN
) -> tuple[int, int] | None:
    """Return count and latest timestamp of a batch that is stored unchanged; None for others.

    Such a batch is accepted by its header alone. `allowed` are its possible attributes.
    """
    size = len(records)
    if size < HEADER_SIZE:
        return None
    (
        base_offset,
        length,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        base_sequence,
        count,
    ) = _unpack_checked(records)
    size_max, timestamp_after_max_ms, _ = limits
    if (
        length + LOG_OVERHEAD == size <= size_max
        and magic == MAGIC
        and base_offset == 0
        and (producer_id < 0 or (base_sequence >= 0 and allowed is not PLAIN))
        and attributes in allowed
        and 0 < count == last_offset_delta + 1
        and (attributes & CODEC_MASK or count * RECORD_SIZE_MIN <= size - HEADER_SIZE)
        and base_timestamp <= max_timestamp <= now_ms + timestamp_after_max_ms
        and iscsi(records[ATTRIBUTES_POSITION:]) == crc
    ):
        return count, max_timestamp
    return None


class UsualLimits(NamedTuple):
    """The limits of a usual batch, computed once for a topic's config."""

    size_bytes_max: int
    """0 for topics that read or rewrite batches, so that no batch is usual."""

    timestamp_after_max_ms: int
    segment_bytes: int


def usual_limits(config: LogConfig) -> UsualLimits:
    size_max = min(config.max_message_bytes, config.segment_bytes)
    return UsualLimits(
        size_max if takes_usual_batches(config) else 0,
        config.message_timestamp_after_max_ms,
        config.segment_bytes,
    )


def takes_usual_batches(config: LogConfig) -> bool:
    """Return whether this topic stores batches unchanged, by their headers alone."""
    return (
        config.compression_type == "producer"
        and config.message_timestamp_type == "CreateTime"
        and config.message_timestamp_before_max_ms == _FOREVER
        and not config.is_compacted
        and not config.record_rules
    )


class CheckedBatch(NamedTuple):
    """A batch that was checked for a config, and is valid for no other."""

    config: LogConfig
    records: memoryview
    header: BatchHeader


def check_for(records: memoryview, config: LogConfig, now_ms: int) -> CheckedBatch:
    """Check a client's batch before its append, in any thread."""
    return CheckedBatch(config, *check_batches(records, config, now_ms))


def is_heavy(records: memoryview) -> bool:
    """Return whether reading each record of a batch would take more than a few milliseconds."""
    if len(records) < HEADER_SIZE:
        return False
    count = int.from_bytes(records[_COUNT_POSITION:HEADER_SIZE], "big", signed=True)
    return len(records) > _HEAVY_BYTES or count > _HEAVY_COUNT


def check_replicated(
    records: memoryview, next_offset: int, leader_epoch_max: int = EPOCH_MAX
) -> tuple[list[ReplicatedBatch], int]:
    """Return a leader's whole batches and their size; only damage and order are checked.

    A leader fills its answer up to a size and may cut off the last batch, which is left out.
    Batches of a newer epoch than `leader_epoch_max` are left out as well, with all that follow:
    another leader wrote them, and the log must be compared with that leader's first.
    """
    found = []
    position = 0
    whole = len(records) - HEADER_SIZE
    while position <= whole:
        batch = _unpack_replicated(records, position)
        base_offset, length, leader_epoch, magic, crc, _, last_offset_delta, _, _ = batch
        end = position + LOG_OVERHEAD + length
        if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD:
            read_header(records, position)  # Raises the error.
        if end > len(records) or leader_epoch > leader_epoch_max:
            break
        if iscsi(records[position + ATTRIBUTES_POSITION : end]) != crc:
            check_crc(records, position, end - position)  # Raises the error.
        if base_offset < next_offset or last_offset_delta < 0:
            raise OutOfPlace(base_offset, base_offset + last_offset_delta, next_offset)
        next_offset = base_offset + last_offset_delta + 1
        position = end
        found.append(batch)
    return found, position


def _examine(
    records: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> tuple[memoryview, BatchHeader]:
    """Raise the error of the first violated rule, or rewrite the batch for the topic."""
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
    """Return the one batch of a produced partition, without a cut-off batch after it."""
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
    """Return the size of the first batch, None if it is incomplete."""
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
    """Refuse headers that no correct client writes."""
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
    """Read the records if the topic requires it, and rewrite the batch by the topic's config."""
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
    """Return whether the header does not suffice, so that the records must be read."""
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
    """Raise if a rule of the topic rejects any record of the batch."""
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
            f"{len(refused)} of {count} records violate the rules of the topic; record "
            f"{refused[0][0]}: {refused[0][1]}",
            tuple(refused),
        )


def _timestamp_bounds(config: LogConfig, now_ms: int) -> tuple[int, int]:
    """Return the accepted timestamps of clients; unbounded if the broker's clock replaces them."""
    if config.message_timestamp_type == "LogAppendTime":
        return -_FOREVER, _FOREVER
    return (
        now_ms - config.message_timestamp_before_max_ms,
        min(now_ms + config.message_timestamp_after_max_ms, _FOREVER),
    )


def _patched(records: memoryview, header: BatchHeader) -> memoryview:
    """Write changed header fields into the batch, in place if the buffer is writable."""
    batch = memoryview(bytearray(records)) if records.readonly else records
    fields = list(msgspec.structs.astuple(header))
    fields[1] -= LOG_OVERHEAD
    HEADER.pack_into(batch, 0, *fields)
    seal(batch)
    return batch
