"""Batches against other people's encoders and decoders, and against hostile bytes."""

import warnings
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import CorruptMessage, KafkaError
from headrace.protocol.batches import (
    HEADER_SIZE,
    Record,
    block_of,
    build_batch,
    check_crc,
    headers,
    read_header,
    records_of,
    seal,
)
from headrace.protocol.compression import Codec, decompress
from headrace.protocol.records import read_varint, scan_records, varint
from headrace.storage.config import LogConfig
from headrace.storage.validation import check_batches

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # It uses a deprecated way to read its own files.
    import kafka.record.default_records as kafka_python_records

OTHERS = {"aiokafka": aiokafka_records, "kafka-python": kafka_python_records}

payloads = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=10), payloads), max_size=3).map(tuple)
timestamps = st.integers(0, 2**43)
contents = st.tuples(timestamps, payloads, payloads, header_lists)
codecs = st.sampled_from(list(Codec))
configs = st.builds(
    LogConfig,
    compression_type=st.sampled_from(["producer", "uncompressed", "gzip", "snappy", "zstd"]),
    message_timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    message_timestamp_before_max_ms=st.sampled_from([1_000, 2**63 - 1]),
    cleanup_policy=st.sampled_from([frozenset(("delete",)), frozenset(("compact",))]),
    max_message_bytes=st.sampled_from([150, 1_048_588]),
)


@st.composite
def record_lists(draw: st.DrawFn, gaps: bool = False) -> list[Record]:
    """Records in ascending order of offset, as a log holds them."""
    records = []
    offset = draw(st.integers(0, 2**50)) if gaps else 0
    for content in draw(st.lists(contents, min_size=1, max_size=20)):
        records.append(Record(offset, *content))
        offset += draw(st.integers(1, 1_000)) if gaps else 1
    return records


@given(record_lists(gaps=True), codecs, st.booleans())
def test_batches_round_trip(records: list[Record], codec: Codec, transactional: bool) -> None:
    batch = build_batch(records, codec=codec, transactional=transactional)
    check_crc(batch, 0, len(batch))
    assert records_of(batch) == records
    assert [position for position, _ in headers(batch + batch)] == [0, len(batch)]
    assert read_header(batch).max_timestamp == max(record.timestamp for record in records)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_round_trip(number: int) -> None:
    assert read_varint(varint(number), 0, 70) == (number, len(varint(number)))


@pytest.mark.parametrize("name", OTHERS)
@given(records=record_lists(), codec=codecs)
def test_others_read_our_batches(name: str, records: list[Record], codec: Codec) -> None:
    """LOG-1, LOG-16: all codecs, bit by bit."""
    theirs = OTHERS[name].DefaultRecordBatch(bytes(build_batch(records, codec=codec)))
    assert theirs.validate_crc()
    assert [as_record(record) for record in theirs] == records


@pytest.mark.parametrize("name", OTHERS)
@given(records=record_lists(), codec=codecs)
def test_we_read_the_batches_of_others(name: str, records: list[Record], codec: Codec) -> None:
    builder = OTHERS[name].DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for record in records:
        builder.append(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            headers=list(record.headers),
        )
    batch = bytearray(builder.build())
    check_crc(batch, 0, len(batch))
    assert records_of(batch) == records
    stored, _ = check_batches(memoryview(batch), LogConfig(), 2**43)
    assert stored.obj is batch


@given(st.binary(max_size=300))
def test_hostile_bytes_are_corrupt_and_nothing_else(data: bytes) -> None:
    expect_corrupt_at_worst(data)


@given(record_lists(), codecs, st.data())
def test_damaged_batches_are_corrupt_and_nothing_else(
    records: list[Record], codec: Codec, data: st.DataObject
) -> None:
    """Every bit may be wrong, and the checksum right all the same: a client can do that."""
    batch = build_batch(records, codec=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(8, len(batch) - 1))] = data.draw(st.integers(0, 255))
    seal(batch)
    expect_corrupt_at_worst(batch[: data.draw(st.integers(0, len(batch)))])
    expect_corrupt_at_worst(batch)


@given(record_lists(), codecs, configs, st.data())
def test_damaged_batches_get_an_error_or_are_stored_whole(
    records: list[Record], codec: Codec, config: LogConfig, data: st.DataObject
) -> None:
    batch = build_batch(records, codec=codec)
    for _ in range(data.draw(st.integers(0, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        seal(batch)
    try:
        stored, header = check_batches(memoryview(batch), config, 2**42)
    except KafkaError:
        return
    assert header == read_header(stored)
    assert header.size == len(stored) <= config.max_message_bytes
    check_crc(stored, 0, len(stored))


@given(st.binary(max_size=400), st.integers(-5, 100))
def test_hostile_records_are_corrupt_and_nothing_else(block: bytes, count: int) -> None:
    try:
        spans = list(scan_records(block, count))
    except CorruptMessage:
        return
    assert [span[0] for span in spans] == [0, *(span[1] for span in spans)][: len(spans)]


@given(codecs, st.binary(max_size=200))
def test_hostile_compressed_bytes_are_corrupt_and_nothing_else(codec: Codec, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, 100_000)) <= 100_000
    except CorruptMessage:
        return


def expect_corrupt_at_worst(data: bytes | bytearray) -> None:
    try:
        for position, header in headers(data):
            assert header.size >= HEADER_SIZE
            block_of(data, position, header, 1 << 20)
            records_of(data, position, 1 << 20)
    except CorruptMessage:
        return


def as_record(record: Any) -> Record:
    return Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
