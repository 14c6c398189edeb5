"""Encodes the coordinator records of one decision as one batch, so they are written atomically."""

from collections.abc import Iterator, Sequence

from headrace.coordination.effects import Producer, RecordFacts
from headrace.errors import CorruptMessage
from headrace.protocol.batches import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    block_of,
    seal,
)
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.records import read_varint, varint

_NO_PRODUCER = Producer(-1, -1)
_EMPTY_HEADER = bytes(HEADER_SIZE)
_NO_ATTRIBUTES_NO_DELAY = b"\x00\x00"
_NULL = b"\x01"  # A length of -1.
_NO_HEADERS = b"\x00"
_SHORT_MAX = 512
_SHORT = tuple(varint(number) for number in range(_SHORT_MAX))
"""Encoded numbers up to 512, which nearly all records use: a look-up takes half the time."""


def encode_batch(
    records: Sequence[CoordinatorRecord], now_ms: int, producer: Producer | None = None
) -> bytearray:
    """Encode records that all carry the time of the decision; the log patches the rest."""
    parts = [_EMPTY_HEADER]
    for index, (key, value) in enumerate(records):
        place = _SHORT[index] if index < _SHORT_MAX else varint(index)
        key_length = len(key)
        key_size = _SHORT[key_length] if key_length < _SHORT_MAX else varint(key_length)
        if value is None:
            value_size, value = _NULL, b""
        else:
            length = len(value)
            value_size = _SHORT[length] if length < _SHORT_MAX else varint(length)
        size = 3 + len(place) + len(key_size) + key_length + len(value_size) + len(value)
        parts += (
            _SHORT[size] if size < _SHORT_MAX else varint(size),
            _NO_ATTRIBUTES_NO_DELAY,
            place,
            key_size,
            key,
            value_size,
            value,
            _NO_HEADERS,
        )
    batch = bytearray().join(parts)
    producer_id, producer_epoch = producer or _NO_PRODUCER
    HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LOG_OVERHEAD,
        0,
        MAGIC,
        0,
        TRANSACTIONAL if producer is not None else 0,
        len(records) - 1,
        now_ms,
        now_ms,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        len(records),
    )
    seal(batch)
    return batch


def records_in(
    data: bytes, position: int, header: BatchHeader
) -> Iterator[tuple[CoordinatorRecord, RecordFacts]]:
    """Yield the records of a batch for replay; headers of records are skipped."""
    block = block_of(data, position, header)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    producer_id, producer_epoch = header.producer_id, header.producer_epoch
    position, block_end = 0, len(block)
    try:
        for _ in range(header.count):
            size, position = _number(block, position)
            end = position + size
            if not position < end <= block_end:
                raise CorruptMessage(f"a record of {size} bytes does not fit into its batch")
            timestamp_delta, at = 0, position + 2
            if block[position + 1]:
                timestamp_delta, at = read_varint(block, position + 1, 70)
            offset_delta, at = _number(block, at)
            key_size, at = _number(block, at)
            key_end = at + key_size if key_size > 0 else at
            value_size, value_at = _number(block, key_end)
            value = None if value_size < 0 else block[value_at : value_at + value_size]
            position = end
            yield (
                CoordinatorRecord(block[at:key_end], value),
                RecordFacts(
                    base_offset + offset_delta,
                    base_timestamp + timestamp_delta,
                    producer_id,
                    producer_epoch,
                ),
            )
    except IndexError:
        raise CorruptMessage("The records of a batch end too early.") from None


def _number(block: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it, fast for one and two bytes."""
    number = block[position]
    if number < 128:
        return (number >> 1) ^ -(number & 1), position + 1
    high = block[position + 1]
    if high < 128:
        number += (high << 7) - 128
        return (number >> 1) ^ -(number & 1), position + 2
    return read_varint(block, position)
