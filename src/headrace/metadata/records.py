"""Metadata records in batches: what the metadata log and its snapshots are made of.

A plain batch holds framed metadata records; a control batch holds what concerns the log itself:
who leads it, who votes, where a snapshot begins and ends.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from headrace.errors import HeadraceError, KafkaError
from headrace.protocol.batches import Record, build_batch, check_crc, headers, records_of
from headrace.protocol.codec import DecodeError, decode, encode
from headrace.protocol.control_records import ControlType, control_key, control_type
from headrace.protocol.message import Message
from headrace.protocol.metadata_records import decode_metadata_record, encode_metadata_record
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

BATCH_SIZE_MAX = 8 << 20
"""Kafka's limit: a follower takes no larger batch."""

_CONTROL_VERSION = Struct(">h")
_BY_TYPE: dict[int, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_KEY_OF = {message: control_key(ControlType(kind)) for kind, message in _BY_TYPE.items()}


class CorruptMetadata(HeadraceError):
    """Bytes of the metadata log or of a snapshot that are not what was once written."""


class UnreplayableRecord(HeadraceError):
    """A record that does not fit what came before it: the log is damaged, or not ours to read."""


class VersionedRecord(NamedTuple):
    """A metadata record and the version that it is to be written in."""

    message: Message
    version: int = 0


class MetadataBatch(NamedTuple):
    """The decoded records of one batch, and where it stands in the log."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    is_control: bool
    records: Sequence[Message]


def encode_batch(
    records: Sequence[VersionedRecord], base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """One batch: as all of it is written or nothing, so is the operation that it stands for."""
    values = [encode_metadata_record(message, version) for message, version in records]
    return encode_values(values, base_offset, epoch, timestamp_ms)


def encode_values(
    values: Sequence[bytes], base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """A batch of records that are encoded already."""
    return build_batch(
        [
            Record(offset, timestamp_ms, None, value)
            for offset, value in enumerate(values, base_offset)
        ],
        leader_epoch=epoch,
    )


def encode_control_batch(
    messages: Sequence[Message], base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    return build_batch(
        [
            Record(
                offset,
                timestamp_ms,
                _KEY_OF[type(message)],
                bytes(encode(message, 0)),
            )
            for offset, message in enumerate(messages, base_offset)
        ],
        leader_epoch=epoch,
        control=True,
    )


def decode_batches(data: bytes | bytearray | memoryview) -> Iterator[MetadataBatch]:
    """Every batch in a piece of a log or in a snapshot, checksums verified."""
    end = 0
    try:
        for position, header in headers(data):
            check_crc(data, position, header.size)
            end = position + header.size
            read = _read_control if header.is_control else _read_metadata
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
        raise CorruptMetadata(f"the last {len(data) - end} bytes are no whole batch")


def _read_metadata(record: Record) -> Message:
    return decode_metadata_record(record.value or b"")[0]


def _read_control(record: Record) -> Message | None:
    """A control record, or None if it is of a type that only later versions know."""
    known, value = _BY_TYPE.get(control_type(record.key)), record.value or b""
    if len(value) < _CONTROL_VERSION.size:
        raise DecodeError("a control record is too short")
    if known is None:
        return None
    (version,) = _CONTROL_VERSION.unpack_from(value)
    return decode(known, version, value)
