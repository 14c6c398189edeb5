"""Record batches built by aiokafka's encoder, which shares nothing with ours."""

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from tests.clients import AN_HOUR_AGO, Sent

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# Base offset, batch length and partition leader epoch stand before this position, and so does
# everything that a broker changes in a batch that it accepts.
UNTOUCHED_FROM = 16


def batch(
    *records: Sent,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One v2 batch as a producer sends it; young enough that retention leaves it alone."""
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
    return bytes(builder.build())


def values_in(data: bytes) -> list[bytes | None]:
    return [record.value for record in DefaultRecordBatch(data)]
