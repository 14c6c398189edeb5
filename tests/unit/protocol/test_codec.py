"""The codec against an independent one, and at the limits of valid input."""

import datetime
import struct
from dataclasses import fields as dataclass_fields
from io import BytesIO
from typing import Annotated, Any
from uuid import UUID

import pytest
from kio.serial import entity_reader, entity_writer

from headrace.errors import UnsupportedVersion
from headrace.protocol.codec import DecodeError, decode, encode, read, read_bounded
from headrace.protocol.fields import fields_of
from headrace.protocol.message import FrozenStructure, Int32, Message, Structure
from headrace.protocol.schemas.fetch import FetchRequest, ForgottenTopic
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.uuids import ZERO
from tests.builders.messages import (
    CONTROL_RECORDS,
    REQUESTS,
    RESPONSES,
    every_version,
    kio_class,
    sample,
)

SAMPLES = 6


@pytest.mark.parametrize(
    ("message", "version"), every_version([*REQUESTS, *RESPONSES, *CONTROL_RECORDS])
)
def test_agrees_with_an_independent_codec(message: type[Message], version: int) -> None:
    """OPS-1: every message, in every version that Kafka 4.3 advertises."""
    theirs = kio_class(message, version)
    for seed in range(SAMPLES):
        ours = sample(message, version, seed)
        encoded = bytes(encode(ours, version))
        entity, size = entity_reader(theirs)(encoded, 0)
        assert size == len(encoded)
        assert_same(ours, entity, version)
        out = BytesIO()
        entity_writer(theirs)(out, entity)
        assert out.getvalue() == encoded
        assert decode(message, version, encoded) == ours


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    """Field by field, in order; kio's names differ where a unit is part of the type."""
    mine = [field for field in fields_of(type(ours)) if version in field.versions]
    for field, other in zip(mine, dataclass_fields(theirs), strict=True):
        value = getattr(ours, field.name)
        expected = getattr(theirs, other.name)
        if not field.is_array:
            expected = plain(expected, field.kind)
        if field.is_array and value is not None:
            assert expected is not None
            for one, two in zip(value, expected, strict=True):
                assert_same_value(one, plain(two, field.kind), version)
        else:
            assert_same_value(value, expected, version)


def assert_same_value(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, Structure | FrozenStructure) and theirs is not None:
        assert_same(ours, theirs, version)
    else:
        assert ours == theirs


def plain(value: Any, kind: str) -> Any:
    """kio's richer values as the numbers and bytes of the wire."""
    match value:
        case None if kind == "uuid":
            return ZERO
        case None if kind == "int64":
            return -1
        case UUID():
            return value.bytes
        case datetime.timedelta():
            return round(value.total_seconds() * 1000)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
    return value


def test_a_field_that_the_version_lacks_is_dropped_where_kafka_allows_it() -> None:
    request = FetchRequest(max_bytes=5, rack_id="a", session_epoch=4)
    assert decode(FetchRequest, 4, encode(request, 4)) == FetchRequest(max_bytes=5)


def test_a_field_that_the_version_lacks_is_refused_where_it_would_be_missed() -> None:
    request = MetadataRequest(include_topic_authorized_operations=True)
    with pytest.raises(UnsupportedVersion, match="include_topic_authorized_operations"):
        encode(request, 7)


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_a_version_that_kafka_does_not_speak_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        encode(ProduceRequest(), version)
    with pytest.raises(UnsupportedVersion):
        decode(ProduceRequest, version, b"")


def test_record_sets_are_views_of_the_received_bytes() -> None:
    """Records are neither copied nor read on their way to the log."""
    partition = PartitionProduceData(index=1, records=b"some records")
    request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[partition])])
    data = encode(request, 9)
    records = decode(ProduceRequest, 9, data).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[:4] = b"SOME"
    assert b"SOME records" in data


@pytest.mark.parametrize(("message", "version"), every_version(REQUESTS))
def test_a_reader_that_counts_reads_the_same(message: type[Message], version: int) -> None:
    for seed in range(2):
        encoded = encode(sample(message, version, seed), version)
        # So much data follows that it has to count.
        data = memoryview(bytes(encoded) + bytes(20_000))
        assert read_bounded(message, version, data, 0, 10_000) == read(message, version, data)


def test_elements_are_counted_over_all_arrays() -> None:
    topics = [ForgottenTopic(topic="t", partitions=[1] * 100) for _ in range(10)]
    data = memoryview(encode(FetchRequest(forgotten_topics_data=topics), 12))
    assert read_bounded(FetchRequest, 12, data, 0, 1_010)[0].forgotten_topics_data == topics
    with pytest.raises(DecodeError, match="too many elements"):
        read_bounded(FetchRequest, 12, data, 0, 1_009)


def test_null_where_none_is_allowed_is_refused() -> None:
    nothing = bytes.fromhex("ffffffff")
    assert decode(MetadataRequest, 1, nothing) == MetadataRequest(topics=None)
    with pytest.raises(DecodeError, match="topics must not be null"):
        decode(MetadataRequest, 0, nothing)


def test_arrays_of_any_length_are_written() -> None:
    """A length takes one byte below 128, and more from there on."""
    for count in (0, 1, 126, 127, 128, 20_000):
        numbers = list(range(count))
        partition = MetadataResponsePartition(replica_nodes=numbers, isr_nodes=[1])
        message = MetadataResponse(topics=[MetadataResponseTopic(partitions=[partition])])
        for version in (8, 12):
            assert decode(MetadataResponse, version, encode(message, version)) == message


def test_more_shapes_than_are_remembered_are_written() -> None:
    for count in range(200):
        forgotten = ForgottenTopic(topic_id=b"x" * 16, partitions=list(range(count)))
        request = FetchRequest(forgotten_topics_data=[forgotten])
        assert decode(FetchRequest, 17, encode(request, 17)) == request


@pytest.mark.parametrize("version", [8, 12])
def test_a_string_has_kafkas_limit(version: int) -> None:
    longest = MetadataResponse(cluster_id="x" * 0x7FFF)
    assert decode(MetadataResponse, version, encode(longest, version)) == longest
    with pytest.raises((ValueError, struct.error)):
        encode(MetadataResponse(cluster_id="x" * 0x8000), version)


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode(MetadataRequest, 0, bytes.fromhex("00000001 0002 c328"))


def test_a_tagged_field_must_have_its_declared_size() -> None:
    encoded = encode(FetchRequest(cluster_id="abc"), 12)
    assert encoded.endswith(b"\x01\x00\x04\x04abc")
    encoded[-5] = 3
    with pytest.raises(DecodeError):
        decode(FetchRequest, 12, encoded)
    encoded[-5] = 5
    with pytest.raises(DecodeError):
        decode(FetchRequest, 12, encoded + b"d")


class Inner(FrozenStructure, frozen=True):
    number: Annotated[Int32, "0+"] = 7


class Outer(Message):
    """The two ways in which Kafka marks a structure that may be null."""

    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    plain: Annotated[Inner | None, "0+"] = None
    optional: Annotated[Inner | None, "0+ tag=0"] = None
    explicit: Annotated[Inner | None, "0+ tag=1"] = Inner()


@pytest.mark.parametrize(
    ("message", "encoded"),
    [
        (Outer(), "ff 00"),
        (Outer(plain=Inner(1)), "01 00000001 00 00"),
        (Outer(optional=Inner(1)), "ff 01 00 06 01 00000001 00"),
        (Outer(explicit=None), "ff 01 01 01 00"),
        (Outer(explicit=Inner(1)), "ff 01 01 06 01 00000001 00"),
    ],
)
def test_nullable_structures_are_encoded(message: Outer, encoded: str) -> None:
    assert encode(message, 0) == bytes.fromhex(encoded)
    assert decode(Outer, 0, bytes.fromhex(encoded)) == message


class Limited(FetchRequest):
    """A message with fewer versions, as a client makes it to avoid the newest ones."""

    VERSIONS = range(4, 13)


def test_a_subclass_has_the_fields_of_its_message() -> None:
    request = Limited(max_bytes=5, rack_id="a")
    assert encode(request, 12) == encode(FetchRequest(max_bytes=5, rack_id="a"), 12)
