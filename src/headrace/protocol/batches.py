"""Record batches, format version 2: what a log holds and what clients send and fetch.

A batch is a header of 61 bytes and a block of records, compressed as a whole. The CRC starts
at the attributes, so base offset and leader epoch may be written into a finished batch: a
leader names the offsets of a batch by patching twelve bytes.

    i64 base offset · i32 length of what follows · i32 leader epoch · i8 magic 2 · u32 crc32c
    i16 attributes · i32 last offset delta · i64 base timestamp · i64 max timestamp
    i64 producer id · i16 producer epoch · i32 base sequence · i32 count · records

The hot paths read headers only. `records_of` makes an object per record and is for tools,
metadata and tests; `scan_records` walks a block of records without that.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from fastcrc.crc32 import iscsi

from headrace.errors import CorruptMessage
from headrace.protocol.compression import (
    DECOMPRESSED_SIZE_MAX,
    Buffer,
    Codec,
    compress,
    decompress,
)

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""The bytes of base offset and length, which the length itself does not count."""
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
"""Where the checksummed part begins."""

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
"""Set by compaction: the base timestamp says when tombstones and markers may go."""

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
RECORD_SIZE_MIN: Final = 7
"""A record of null key and null value: seven fields of a byte each."""

_CRC = struct.Struct(">I")


class BatchHeader(msgspec.Struct, gc=False):
    """The fixed part of a batch, in the order of its bytes.

    `size` is that of the whole batch, `LOG_OVERHEAD` included.
    """

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def uses_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class Record(msgspec.Struct, frozen=True):
    """One record, for code that can afford an object for each."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


RecordSpan = tuple[int, int, int, int, bytes | None, bool]
"""Start and end of a record in its block, timestamp delta, offset delta, key, has a value."""


def crc32c(data: Buffer) -> int:
    """The checksum of batches and producer snapshots."""
    return iscsi(data)


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; the batch behind it may be cut off and is not looked at."""
    if len(data) - position < HEADER_SIZE:
        raise CorruptMessage(f"There is no room for a batch header at position {position}.")
    header = BatchHeader(*HEADER.unpack_from(data, position))
    header.size += LOG_OVERHEAD
    if header.magic != MAGIC:
        raise CorruptMessage(f"The batch at position {position} has magic {header.magic}, not 2.")
    if header.size < HEADER_SIZE:
        raise CorruptMessage(f"The batch at position {position} claims {header.size} bytes.")
    return header


def headers(data: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch; a batch that is cut off ends the walk."""
    end = len(data)
    while end - position >= HEADER_SIZE:
        header = read_header(data, position)
        if header.size > end - position:
            return
        yield position, header
        position += header.size


def computed_crc(data: Buffer, position: int, size: int) -> int:
    """The checksum that the batch at `position` should carry."""
    return iscsi(memoryview(data)[position + ATTRIBUTES_POSITION : position + size])


def check_crc(data: Buffer, position: int, size: int) -> None:
    """Raise `CorruptMessage` unless the batch is the one that its producer sent."""
    (stored,) = _CRC.unpack_from(data, position + CRC_POSITION)
    computed = computed_crc(data, position, size)
    if stored != computed:
        raise CorruptMessage(
            f"The batch at position {position} carries CRC {stored:#010x} but has {computed:#010x}."
        )


def seal(batch: bytearray | memoryview) -> None:
    """Write the checksum of a batch whose other bytes are final."""
    _CRC.pack_into(batch, CRC_POSITION, computed_crc(batch, 0, len(batch)))


def block_of(
    data: Buffer,
    position: int,
    header: BatchHeader,
    size_max: int = DECOMPRESSED_SIZE_MAX,
) -> bytes:
    """The records of a batch as one plain block, never more than `size_max` bytes."""
    end = position + header.size
    if end > len(data):
        raise CorruptMessage(f"The batch at position {position} is cut off.")
    if header.codec > Codec.ZSTD:
        raise CorruptMessage(f"The batch at position {position} has codec {header.codec}.")
    block = memoryview(data)[position + HEADER_SIZE : end]
    return bytes(decompress(header.codec, block, size_max))


def records_of(
    data: Buffer, position: int = 0, size_max: int = DECOMPRESSED_SIZE_MAX
) -> list[Record]:
    """Every record of the batch at `position`, with absolute offset and timestamp."""
    header = read_header(data, position)
    block = block_of(data, position, header, size_max)
    fixed_timestamp = header.max_timestamp if header.uses_log_append_time else None
    records = []
    for start, end, timestamp_delta, offset_delta, key, _ in scan_records(block, header.count):
        timestamp = header.base_timestamp + timestamp_delta
        records.append(
            Record(
                header.base_offset + offset_delta,
                timestamp if fixed_timestamp is None else fixed_timestamp,
                key,
                *_value_and_headers(block, start, end),
            )
        )
    return records


def scan_records(block: bytes, count: int) -> Iterator[RecordSpan]:
    """Walk `count` records of a plain block, checking every length against the bytes left.

    The block must hold exactly these records. Varints of one and two bytes, nearly all of
    them, are read in line: a call for each would cost more than all the rest.
    """
    if not 0 <= count <= len(block) // RECORD_SIZE_MIN:
        raise CorruptMessage(f"{len(block)} bytes cannot hold {count} records.")
    block_end = len(block)
    position = 0
    try:
        for _ in range(count):
            start = position
            length = block[position]
            position += 1
            if length > 127:
                if (high := block[position]) < 128:
                    length += (high << 7) - 128
                    position += 1
                else:
                    length, position = _long_varint(block, start)
            end = position + (length >> 1)
            if length & 1 or end > block_end:
                raise CorruptMessage(f"A record at {start} claims bytes beyond its batch.")
            timestamp_delta = block[position + 1]  # The byte before it is unused attributes.
            position += 2
            if timestamp_delta > 127:
                if (high := block[position]) < 128:
                    timestamp_delta += (high << 7) - 128
                    position += 1
                else:
                    timestamp_delta, position = _long_varint(block, position - 1, 70)
            offset_delta = block[position]
            position += 1
            if offset_delta > 127:
                if (high := block[position]) < 128:
                    offset_delta += (high << 7) - 128
                    position += 1
                else:
                    offset_delta, position = _long_varint(block, position - 1)
            key_size = block[position]
            position += 1
            if key_size > 127:
                key_size, position = _long_varint(block, position - 1)
            key: bytes | None = None
            if not key_size & 1:
                key_end = position + (key_size >> 1)
                key = block[position:key_end]
                position = key_end
            value_size = block[position]
            position += 1
            if value_size > 127:
                if (high := block[position]) < 128:
                    value_size += (high << 7) - 128
                    position += 1
                else:
                    value_size, position = _long_varint(block, position - 1)
            if not value_size & 1:
                position += value_size >> 1
            if position >= end:  # At least the count of headers comes after the value.
                raise CorruptMessage(f"The fields of a record at {start} exceed its length.")
            yield (
                start,
                end,
                (timestamp_delta >> 1) ^ -(timestamp_delta & 1),
                (offset_delta >> 1) ^ -(offset_delta & 1),
                key,
                not value_size & 1,
            )
            position = end
    except IndexError:
        raise CorruptMessage("The records of a batch end too early.") from None
    if position != block_end:
        raise CorruptMessage(f"A batch has {block_end - position} bytes after its records.")


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = 0,
    level: int | None = None,
    leader_epoch: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """A finished batch of records in ascending order of offset; gaps are allowed.

    Without `base_offset` and `last_offset` the batch spans exactly its records.
    """
    base_offset = records[0].offset if base_offset is None else base_offset
    last_offset = records[-1].offset if last_offset is None else last_offset
    base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    block = bytearray()
    for record in records:
        append_record(block, record, record.offset - base_offset, base_timestamp)
    max_timestamp = max(record.timestamp for record in records)
    return assemble_batch(
        BatchHeader(
            base_offset=base_offset,
            size=0,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=codec
            | (LOG_APPEND_TIME if log_append_time_ms is not None else 0)
            | (TRANSACTIONAL if transactional else 0)
            | (CONTROL if control else 0)
            | (DELETE_HORIZON if delete_horizon_ms is not None else 0),
            last_offset_delta=last_offset - base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp if log_append_time_ms is None else log_append_time_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            count=len(records),
        ),
        block,
        level,
    )


def assemble_batch(header: BatchHeader, block: Buffer, level: int | None = None) -> bytearray:
    """Put header and plain block together: compresses by the header's codec, sets size and CRC."""
    payload = compress(header.codec, block, level) if header.codec else block
    batch = bytearray(HEADER_SIZE)
    batch += payload
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LOG_OVERHEAD,
        header.leader_epoch,
        header.magic,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )
    seal(batch)
    return batch


def append_record(out: bytearray, record: Record, offset_delta: int, base_timestamp: int) -> None:
    """Write one record of a block."""
    body = bytearray(1)
    body += varint(record.timestamp - base_timestamp)
    body += varint(offset_delta)
    _append_bytes(body, record.key)
    _append_bytes(body, record.value)
    body += varint(len(record.headers))
    for name, value in record.headers:
        _append_bytes(body, name.encode())
        _append_bytes(body, value)
    out += varint(len(body))
    out += body


def varint(number: int) -> bytes:
    """A zigzag varint: small numbers of either sign are short."""
    number = (number << 1) ^ (number >> 63)
    if number < 128:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, position: int, bits_max: int = 35) -> tuple[int, int]:
    """A zigzag varint and the position after it; `bits_max` is 70 for 64-bit numbers."""
    number, position = _long_varint(data, position, bits_max)
    return (number >> 1) ^ -(number & 1), position


_ONE_BYTE = tuple(bytes((number,)) for number in range(128))


def _long_varint(data: bytes, position: int, bits_max: int = 35) -> tuple[int, int]:
    """The number still in zigzag form, and the position after it."""
    number = 0
    for shift in range(0, bits_max, 7):
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> (32 if bits_max == 35 else 64):
                break
            return number, position
    raise CorruptMessage("A record of a batch holds a number that is too long.")


def _append_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out += _ONE_BYTE[1]
    else:
        out += varint(len(data))
        out += data


def _value_and_headers(
    block: bytes, start: int, end: int
) -> tuple[bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """What the scan skipped: it checked the lengths up to the value, not the headers."""
    try:
        position = read_varint(block, start)[1] + 1
        position = read_varint(block, position, 70)[1]
        position = read_varint(block, position)[1]
        position = _read_bytes(block, position, end)[1]
        value, position = _read_bytes(block, position, end)
        count, position = read_varint(block, position)
        if not 0 <= count <= end - position:
            raise CorruptMessage(f"A record claims {count} headers.")
        found = []
        for _ in range(count):
            name, position = _read_bytes(block, position, end)
            if name is None:
                raise CorruptMessage("A record has a header without a name.")
            content, position = _read_bytes(block, position, end)
            found.append((name.decode(errors="replace"), content))
    except IndexError:
        raise CorruptMessage("The records of a batch end too early.") from None
    if position != end:
        raise CorruptMessage("The fields of a record do not fill its length.")
    return value, tuple(found)


def _read_bytes(block: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(block, position)
    if size < 0:
        return None, position
    if size > end - position:
        raise CorruptMessage("A field of a record exceeds the record.")
    return block[position : position + size], position + size
