"""Record batches, format version 2: the content of logs, of Produce and of Fetch.

A batch is a header of 61 bytes and a block of records, compressed as a whole. The CRC starts
at the attributes, so base offset and leader epoch may be written into a finished batch: a
leader assigns offsets by patching twelve bytes.

    i64 base offset · i32 length of what follows · i32 leader epoch · i8 magic 2 · u32 crc32c
    i16 attributes · i32 last offset delta · i64 base timestamp · i64 max timestamp
    i64 producer id · i16 producer epoch · i32 base sequence · i32 count · records

The hot paths read headers only. `records_of` makes an object per record and is for tools,
metadata and tests; `records.scan_records` walks a block of records without that.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from fastcrc.crc32 import iscsi

from headrace.errors import CorruptMessage
from headrace.protocol.compression import DECOMPRESSED_SIZE_MAX, Buffer, Codec, compress, decompress
from headrace.protocol.records import Headers, append_record, scan_records, value_and_headers

HEADER = struct.Struct(">qiibIhiqqqhii")
PLACE: Final = struct.Struct(">qii")
"""The fields that a leader writes: base offset, length (which stays as it is) and leader epoch."""
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""The bytes of base offset and length, which the length itself does not count."""
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
"""The start of the checksummed part."""
PRODUCER_ID_POSITION: Final = 43

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
"""Set by compaction: the base timestamp is the time when tombstones and markers may be deleted."""

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

_CRC = struct.Struct(">I")


class BatchHeader(msgspec.Struct, gc=False):
    """The fixed part of a batch, in the order of its bytes.

    `size` is the size of the whole batch, `LOG_OVERHEAD` included.
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
    """One record, for code outside of the hot paths."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


def crc32c(data: Buffer) -> int:
    """The checksum of batches and producer snapshots."""
    return iscsi(data)


def read_header(data: Buffer, position: int = 0, *, data_position: int = 0) -> BatchHeader:
    """The header at `position`; the batch behind it may be cut off and is not read.

    `data_position` is the position of the data in its file, for the position in errors.
    """
    if len(data) - position < HEADER_SIZE:
        place = data_position + position
        raise CorruptMessage(f"there is no room for a batch header at position {place}")
    header = BatchHeader(*HEADER.unpack_from(data, position))
    header.size += LOG_OVERHEAD
    if header.magic != MAGIC:
        place = data_position + position
        raise CorruptMessage(f"the batch at position {place} has magic {header.magic}, not 2")
    if header.size < HEADER_SIZE:
        place = data_position + position
        raise CorruptMessage(f"the batch at position {place} claims {header.size} bytes")
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


def check_crc(data: Buffer, position: int, size: int, *, data_position: int = 0) -> None:
    """Raise `CorruptMessage` unless the batch is the one that its producer sent."""
    (stored,) = _CRC.unpack_from(data, position + CRC_POSITION)
    computed = computed_crc(data, position, size)
    if stored != computed:
        raise CorruptMessage(
            f"the batch at position {data_position + position} carries CRC {stored:#010x} "
            f"but has {computed:#010x}"
        )


def seal(batch: bytearray | memoryview) -> None:
    """Write the checksum of a batch; its other bytes must be final."""
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
        raise CorruptMessage(f"the batch at position {position} is cut off")
    if header.codec > Codec.ZSTD:
        raise CorruptMessage(f"the batch at position {position} has codec {header.codec}")
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
                *value_and_headers(block, start, end),
            )
        )
    return records


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
        append_record(
            block,
            record.timestamp - base_timestamp,
            record.offset - base_offset,
            record.key,
            record.value,
            record.headers,
        )
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
