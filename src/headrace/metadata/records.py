"""Metadata records in batches: the content of the metadata log and its snapshots.

A plain batch holds framed metadata records. A control batch holds records about the log itself:
its leader, its voters, and the header and footer of a snapshot.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.errors import HeadraceError, KafkaError
from headrace.protocol.batches import Record, build_batch, check_crc, headers, records_of
from headrace.protocol.codec import DecodeError
from headrace.protocol.message import Message
from headrace.protocol.metadata_records import decode_metadata_record, encode_metadata_record
from headrace.protocol.quorum_records import decode_control_record

BATCH_SIZE_MAX = 8 << 20
"""Kafka's limit: a follower rejects a larger batch."""


class CorruptMetadata(HeadraceError):
    """Corrupt bytes in the metadata log or in a snapshot."""


class UnreplayableRecord(HeadraceError):
    """A record that contradicts the records before it: the log is damaged or of a newer version."""


class VersionedRecord(NamedTuple):
    """A metadata record, and its version in the log."""

    message: Message
    version: int = 0


class MetadataBatch(NamedTuple):
    """The decoded records and the offsets of one batch."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    is_control: bool
    records: Sequence[Message]


def encode_batch(
    records: Sequence[VersionedRecord], base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """Encode one batch, which makes its operation atomic."""
    values = [encode_metadata_record(message, version) for message, version in records]
    return encode_values(values, base_offset, epoch, timestamp_ms)


def encode_values(
    values: Sequence[bytes], base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """Return a batch of encoded records."""
    return build_batch(
        [
            Record(offset, timestamp_ms, None, value)
            for offset, value in enumerate(values, base_offset)
        ],
        leader_epoch=epoch,
    )


def decode_batches(data: bytes | bytearray | memoryview) -> Iterator[MetadataBatch]:
    """Decode each batch of a piece of a log or of a snapshot, and verify its checksum."""
    end = 0
    try:
        for position, header in headers(data):
            check_crc(data, position, header.size)
            end = position + header.size
            read = decode_control_record if header.is_control else _read_metadata
            yield MetadataBatch(
                header.base_offset,
                header.last_offset,
                header.leader_epoch,
                header.max_timestamp,
                header.is_control,
                [record for one in records_of(data, position) if (record := read(one)) is not None],
            )
    except (KafkaError, DecodeError) as error:
        raise CorruptMetadata(f"the batch after position {end}: {error}") from error
    if end != len(data):
        raise CorruptMetadata(f"the last {len(data) - end} bytes are not a complete batch")


def _read_metadata(record: Record) -> Message:
    return decode_metadata_record(record.value or b"")[0]
