"""The control records of a quorum's log: leaders, voters, and the frame of a snapshot."""

from collections.abc import Sequence
from struct import Struct

from headrace.protocol.batches import Record, build_batch
from headrace.protocol.codec import DecodeError, decode, encode
from headrace.protocol.control_records import ControlType, control_key, control_type
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

_VALUE_VERSION = Struct(">h")
_QUORUM_RECORDS: dict[int, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_KEY_OF = {message: control_key(ControlType(kind)) for kind, message in _QUORUM_RECORDS.items()}


def encode_control_batch(
    messages: Sequence[Message], base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """Encode records of a quorum's log as one batch."""
    return build_batch(
        [
            Record(offset, timestamp_ms, _KEY_OF[type(message)], bytes(encode(message, 0)))
            for offset, message in enumerate(messages, base_offset)
        ],
        leader_epoch=epoch,
        control=True,
    )


def decode_control_record(record: Record) -> Message | None:
    """Decode a record of a quorum's log; None for a type that only later versions have."""
    known, value = _QUORUM_RECORDS.get(control_type(record.key)), record.value or b""
    if len(value) < _VALUE_VERSION.size:
        raise DecodeError("a control record is too short")
    if known is None:
        return None
    (version,) = _VALUE_VERSION.unpack_from(value)
    return decode(known, version, value)
