"""Metadata batches survive the way to bytes and back; damage is noticed."""

import pytest

from headrace.metadata.records import CorruptMetadata, VersionedRecord, decode_batches, encode_batch
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.message import Message
from headrace.protocol.quorum_records import encode_control_batch
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    VotersRecord,
    VotersRecordVoter,
)
from headrace.protocol.schemas.records.metadata import ConfigRecord, NoOpRecord, TopicRecord


def test_a_batch_round_trips() -> None:
    records = [TopicRecord("orders", b"o" * 16), ConfigRecord(2, "orders", "a", None), NoOpRecord()]
    data = encode_batch([VersionedRecord(one) for one in records], 40, 3, 1000)
    (batch,) = decode_batches(data)
    assert (batch.base_offset, batch.last_offset, batch.epoch, batch.timestamp_ms) == (
        40,
        42,
        3,
        1000,
    )
    assert not batch.is_control
    assert batch.records == records


def test_a_control_batch_round_trips() -> None:
    voters = [LeaderChangeMessageVoter(1)]
    messages: list[Message] = [
        LeaderChangeMessage(0, 1, voters, voters),
        KRaftVersionRecord(0, 1),
        VotersRecord(0, [VotersRecordVoter(1, b"d" * 16)]),
    ]
    (batch,) = decode_batches(encode_control_batch(messages, 0, 1, 5))
    assert batch.is_control
    assert batch.records == messages


def test_control_records_of_the_future_are_passed_over() -> None:
    data = build_batch([Record(0, 0, b"\0\0\0\x63", b"\0\0")], control=True)
    (batch,) = decode_batches(data)
    assert (batch.records, batch.last_offset) == ([], 0)


def test_changed_bytes_are_detected() -> None:
    data = encode_batch([VersionedRecord(TopicRecord("orders", b"o" * 16))], 0, 1, 5)
    data[-3] ^= 1
    with pytest.raises(CorruptMetadata, match="CRC"):
        list(decode_batches(data))


def test_a_truncated_tail_is_detected() -> None:
    data = encode_batch([VersionedRecord(NoOpRecord())], 0, 1, 5)
    with pytest.raises(CorruptMetadata, match="not a complete batch"):
        list(decode_batches(data + data[:-1]))


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x02\x02\x00", b"\x01\x7f\x00", b"\x01\x02\x09"])
def test_unknown_records_are_rejected(value: bytes) -> None:
    with pytest.raises(CorruptMetadata):
        list(decode_batches(build_batch([Record(0, 0, None, value)])))
