"""Coordinator records carry Kafka's type and version numbers before the message."""

import pytest

from headrace.protocol.codec import DecodeError
from headrace.protocol.coordinator_records import (
    decode_key,
    decode_value,
    encode_key,
    encode_record,
    record_types,
)
from headrace.protocol.schemas.records import groups, shares, transactions

GROUPS = record_types(groups)


def test_every_type_has_a_key_and_a_value() -> None:
    numbers = [*range(9), *range(10, 17), *range(17, 24)]
    assert sorted(GROUPS) == [one for one in numbers if one != 18]
    assert sorted(record_types(transactions)) == [0]
    assert sorted(record_types(shares)) == [0, 1]


def test_a_commit_reads_back() -> None:
    key = groups.OffsetCommitKey(group="g", topic="orders", partition=3)
    value = groups.OffsetCommitValue(offset=42, leader_epoch=1, metadata="m", commit_timestamp=9)
    record = encode_record(key, value, 3)
    assert record.value is not None
    assert record.key == b"\x00\x01\x00\x01g\x00\x06orders\x00\x00\x00\x03"
    assert decode_key(GROUPS, record.key) == key
    assert decode_value(GROUPS, key, record.value) == value


def test_a_type_from_the_future_is_passed_over() -> None:
    assert decode_key(GROUPS, b"\x03\xe7anything") is None


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x00"])
def test_broken_keys_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_key(GROUPS, data)


def test_a_version_from_the_future_is_refused() -> None:
    key = groups.GroupMetadataKey(group="g")
    with pytest.raises(DecodeError):
        decode_value(GROUPS, key, b"\x00\x09")
    assert encode_key(key) == b"\x00\x02\x00\x01g"
