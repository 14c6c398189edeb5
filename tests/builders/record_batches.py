"""Record batches built by aiokafka's encoder, which shares nothing with ours."""

import struct

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c_py

from tests.clients.librdkafka import AN_HOUR_AGO, Sent

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# Base offset, batch length and partition leader epoch stand before this position, and so does
# everything that a broker changes in a batch that it accepts.
UNTOUCHED_FROM = 16
CHECKSUM_AT = 17
ATTRIBUTES_AT = 21
GZIP, TRANSACTIONAL, CONTROL = 1, 16, 32


def batch(
    *records: Sent,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> bytes:
    """One v2 batch as a producer sends it; young enough that retention leaves it alone.

    `attributes` are set beside the codec, whatever the records are.
    """
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=0,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=1 << 30,
    )
    for offset, record in enumerate(records):
        timestamp = record.timestamp or AN_HOUR_AGO
        builder.append(offset, timestamp, record.key, record.value, headers=list(record.headers))
    return flagged(bytes(builder.build()), attributes)


def flagged(batch: bytes, attributes: int) -> bytes:
    """The batch with attributes set in its header, under a checksum that is right."""
    changed = bytearray(batch)
    (before,) = struct.unpack_from(">h", batch, ATTRIBUTES_AT)
    struct.pack_into(">h", changed, ATTRIBUTES_AT, before | attributes)
    checksum = calc_crc32c_py(bytes(changed[ATTRIBUTES_AT:])) & 0xFFFFFFFF
    struct.pack_into(">I", changed, CHECKSUM_AT, checksum)
    return bytes(changed)


def values_in(data: bytes) -> list[bytes | None]:
    return [record.value for record in DefaultRecordBatch(data)]
