"""Records of committed offsets, written and read by hand: they outnumber all others.

Key: i16 type 1 · str16 group · str16 topic · i32 partition. Value: i16 version 4 · i64 offset ·
i32 leader epoch · compact string metadata · i64 commit time · tags, of which 0 is the topic's id.
Other versions go through the compiled codec, and a test holds both against each other.
"""

from struct import Struct, error
from typing import Final, NamedTuple

import msgspec

from headrace.protocol.codec import DecodeError, decode
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_value
from headrace.protocol.primitives import uvarint
from headrace.protocol.schemas.records.groups import OffsetCommitValue
from headrace.protocol.uuids import ZERO, Uuid

OFFSET_COMMIT: Final = 1
NO_EXPIRY: Final = -1

_TYPE = b"\x00\x01"
_SHORT = Struct(">h")
_INT = Struct(">i")
_HEAD = Struct(">hqi")
_TIME = Struct(">q")
_PLAIN = Struct(">hqiBqBBB16s")  # No metadata, one tag: number 0, of 16 bytes.
_NO_TEXT = 1  # The length of a compact string is one more than it has bytes.
_ID_BYTES = 16
_KEYS_KNOWN_MAX = 20_000
_HAND_VERSION = 4
_VERSION_WITH_EXPIRY = 1


class OffsetKey(NamedTuple):
    """The group and partition of a committed offset."""

    group_id: str
    topic: str
    partition: int


class CommittedOffset(msgspec.Struct, gc=False):
    """The committed offset of a group for one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = NO_EXPIRY  # Only very old clients set it.
    topic_id: Uuid = ZERO
    record_offset: int = -1  # The offset of its record; the later record wins.


_bytes_of: dict[OffsetKey, bytes] = {}
_key_of: dict[bytes, OffsetKey] = {}
"""The keys that were committed lately: a consumer commits for the same partitions all its life."""


def offset_record(key: OffsetKey, committed: CommittedOffset) -> CoordinatorRecord:
    data = _bytes_of.get(key)
    if data is None:
        if len(_bytes_of) >= _KEYS_KNOWN_MAX:
            _bytes_of.clear()
            _key_of.clear()
        data = _bytes_of[key] = encode_offset_key(*key)
        _key_of[data] = key
    return CoordinatorRecord(data, _encode_value(committed))


def offset_tombstone(key: OffsetKey) -> CoordinatorRecord:
    return CoordinatorRecord(encode_offset_key(*key), None)


def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    group, name = group_id.encode(), topic.encode()
    return b"".join(
        (
            _TYPE,
            _SHORT.pack(len(group)),
            group,
            _SHORT.pack(len(name)),
            name,
            _INT.pack(partition),
        )
    )


def decode_offset_key(data: bytes) -> OffsetKey:
    known = _key_of.get(data)
    if known is not None:
        return known
    try:
        group_end = 4 + _SHORT.unpack_from(data, 2)[0]
        topic_end = group_end + 2 + _SHORT.unpack_from(data, group_end)[0]
        partition: int = _INT.unpack_from(data, topic_end)[0]
        group_id, topic = data[4:group_end].decode(), data[group_end + 2 : topic_end].decode()
    except (error, UnicodeDecodeError) as reason:
        raise DecodeError(f"not the key of a committed offset: {reason}") from reason
    return OffsetKey(group_id, topic, partition)


def _encode_value(committed: CommittedOffset) -> bytes:
    if committed.expire_ms != NO_EXPIRY:
        return encode_value(
            OffsetCommitValue(
                offset=committed.offset,
                metadata=committed.metadata,
                commit_timestamp=committed.commit_ms,
                expire_timestamp=committed.expire_ms,
            ),
            _VERSION_WITH_EXPIRY,
        )
    topic_id = committed.topic_id
    if not committed.metadata and topic_id != ZERO:
        return _PLAIN.pack(
            _HAND_VERSION,
            committed.offset,
            committed.leader_epoch,
            _NO_TEXT,
            committed.commit_ms,
            1,
            0,
            _ID_BYTES,
            topic_id,
        )
    text = committed.metadata.encode()
    return b"".join(
        (
            _HEAD.pack(_HAND_VERSION, committed.offset, committed.leader_epoch),
            uvarint(len(text) + 1) if text else b"\x01",
            text,
            _TIME.pack(committed.commit_ms),
            b"\x00" if topic_id == ZERO else b"\x01\x00\x10" + topic_id,
        )
    )


def decode_offset_value(data: bytes) -> CommittedOffset:
    """The value in any version; the caller sets the record's offset."""
    if data[:2] == b"\x00\x04" and len(data) > 14 and data[14] == 1:  # No metadata, as usual.
        if len(data) == 24 and data[23] == 0:
            _, offset, leader_epoch = _HEAD.unpack_from(data)
            commit_ms = _TIME.unpack_from(data, 15)[0]
            return CommittedOffset(offset, leader_epoch, "", commit_ms)
        if len(data) == 42 and data[23:26] == b"\x01\x00\x10":
            _, offset, leader_epoch = _HEAD.unpack_from(data)
            commit_ms = _TIME.unpack_from(data, 15)[0]
            return CommittedOffset(offset, leader_epoch, "", commit_ms, NO_EXPIRY, data[26:])
    version = int.from_bytes(data[:2], "big")
    if version not in OffsetCommitValue.VERSIONS:
        raise DecodeError(f"a committed offset has the unknown version {version}")
    value = decode(OffsetCommitValue, version, data, 2)
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )
