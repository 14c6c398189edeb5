"""Which batches a log takes, which it rewrites, and which error the others get.

The errors are those that Apache Kafka 4.3 returned for the same bytes.
"""

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from headrace.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from headrace.protocol.batches import (
    HEADER,
    LOG_OVERHEAD,
    BatchHeader,
    Record,
    build_batch,
    check_crc,
    read_header,
    records_of,
    seal,
)
from headrace.storage.config import LogConfig
from headrace.storage.validation import (
    RecordsRefused,
    TimestampsRefused,
    check_batches,
    check_replicated,
)

NOW = 1_700_000_000_000
PLAIN = LogConfig()
COMPACTED = LogConfig(cleanup_policy=frozenset(("compact",)))
BROKER_TIME = LogConfig(message_timestamp_type="LogAppendTime")


def produced(
    count: int = 3, timestamp: int = NOW, key: bytes | None = b"key", **options: Any
) -> bytearray:
    records = [Record(offset, timestamp, key, b"value" * 10) for offset in range(count)]
    return build_batch(records, **options)


def with_header(batch: bytearray, **fields: int) -> bytearray:
    """The batch with some fields replaced and a correct checksum, unless that is replaced."""
    header = msgspec.structs.replace(read_header(batch), **fields)
    values = list(msgspec.structs.astuple(header))
    values[1] -= LOG_OVERHEAD
    changed = bytearray(batch)
    HEADER.pack_into(changed, 0, *values)
    if "crc" not in fields:
        seal(changed)
    return changed


def check(
    batch: bytearray, config: LogConfig = PLAIN, **options: Any
) -> tuple[memoryview, BatchHeader]:
    return check_batches(memoryview(batch), config, NOW, **options)


@pytest.mark.parametrize("codec", range(5))
def test_usual_batches_are_taken_as_they_are(codec: int) -> None:
    """LOG-16: with compression.type=producer the stored bytes are the sent bytes."""
    batch = produced(codec=codec)
    before = bytes(batch)
    stored, header = check(batch)
    assert stored.obj is batch
    assert bytes(stored) == before
    assert header == read_header(batch)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (bytearray(), InvalidRecord),
        (bytearray(b"short"), InvalidRecord),
        (produced()[:20], InvalidRecord),
        (produced()[:-1], InvalidRecord),
        (produced() + produced(), InvalidRecord),
        (produced() + bytes(20), CorruptMessage),
        (produced() + b"\x7f" * 20, CorruptMessage),
        (with_header(produced(), crc=1), CorruptMessage),
        (with_header(produced(), magic=0), InvalidRecord),
        (with_header(produced(), magic=1), InvalidRecord),
        (with_header(produced(), magic=3), CorruptMessage),
        (with_header(produced(), magic=-1), CorruptMessage),
        (with_header(produced(), base_offset=5), InvalidRecord),
        (with_header(produced(), size=22), CorruptMessage),
        (with_header(produced(), size=42), CorruptMessage),
        (with_header(produced(), size=-5), CorruptMessage),
        (with_header(produced(), count=0), InvalidRecord),
        (with_header(produced(), count=4), InvalidRecord),
        (with_header(produced(), count=-1, last_offset_delta=-2), InvalidRecord),
        (with_header(produced(), last_offset_delta=-1), InvalidRecord),
        (with_header(produced(), count=1000, last_offset_delta=999), InvalidRecord),
        (with_header(produced(), attributes=0x20), InvalidRecord),
        (with_header(produced(), attributes=5), UnsupportedCompressionType),
        (with_header(produced(), producer_id=5, producer_epoch=0), InvalidRecord),
        (with_header(produced(timestamp=-1), attributes=8), InvalidTimestamp),
        (produced(timestamp=NOW + 3_600_001), InvalidTimestamp),
    ],
)
def test_bad_batches_get_kafkas_error(batch: bytearray, error: type[KafkaError]) -> None:
    """LOG-4: they are not stored, and the client gets the reason."""
    with pytest.raises(error):
        check(batch)


def test_a_batch_holds_at_least_one_record() -> None:
    """LOG-14."""
    check(produced(count=1))
    with pytest.raises(InvalidRecord):
        check(with_header(produced(count=1), count=0, last_offset_delta=-1))


@pytest.mark.parametrize(
    "batch",
    [
        produced(timestamp=-1),
        produced(timestamp=1),
        produced(timestamp=NOW + 3_600_000),
        with_header(produced(), producer_id=5, producer_epoch=0, base_sequence=0),
        with_header(produced(), producer_id=5, producer_epoch=0, base_sequence=7, attributes=0x10),
        with_header(produced(), base_sequence=3),
        with_header(produced(), attributes=0x40),
        with_header(produced(), attributes=0x80),
    ],
)
def test_odd_but_legal_batches_are_taken_unchanged(batch: bytearray) -> None:
    before = bytes(batch)
    assert bytes(check(batch)[0]) == before


@pytest.mark.parametrize("tail", [b"\x00\x01", b"\x00" * 11, bytes(produced()[:70])])
def test_a_cut_off_batch_at_the_end_is_dropped(tail: bytes) -> None:
    batch = produced()
    stored, header = check(batch + tail)
    assert bytes(stored) == batch
    assert header.size == len(batch)


def test_a_batch_above_the_limit_is_too_large() -> None:
    """LOG-15."""
    batch = produced()
    check(batch, LogConfig(max_message_bytes=len(batch)))
    with pytest.raises(MessageTooLarge):
        check(batch, LogConfig(max_message_bytes=len(batch) - 1))


def test_the_size_of_the_stored_batch_counts_not_only_that_of_the_sent_one() -> None:
    batch = produced(count=100, codec=4)
    config = LogConfig(max_message_bytes=len(batch), compression_type="uncompressed")
    with pytest.raises(MessageTooLarge):
        check(batch, config)


def test_a_batch_that_fills_more_than_a_segment_is_refused() -> None:
    with pytest.raises(RecordListTooLarge):
        check(produced(), LogConfig(segment_bytes=100))


@pytest.mark.parametrize("max_timestamp", [NOW - 5, -1, NOW + 10**9])
def test_a_wrong_latest_timestamp_is_corrected(max_timestamp: int) -> None:
    stored, header = check(with_header(produced(), max_timestamp=max_timestamp))
    assert header.max_timestamp == NOW
    check_crc(stored, 0, len(stored))


def test_timestamps_too_long_ago_are_refused_record_by_record() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1_000)
    batch = build_batch([Record(0, NOW - 999, b"k"), Record(1, NOW - 1_001, b"k"), Record(2, -1)])
    with pytest.raises(TimestampsRefused) as refused:
        check(batch, config)
    assert [index for index, _ in refused.value.record_errors] == [1]


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_records_without_key_are_refused_on_compacted_topics(codec: int) -> None:
    """RET-10."""
    batch = build_batch(
        [Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"v"), Record(2, NOW, b"", b"v")],
        codec=codec,
    )
    with pytest.raises(RecordsRefused) as refused:
        check(batch, COMPACTED)
    assert [index for index, _ in refused.value.record_errors] == [1]
    check(produced(codec=codec), COMPACTED)


def test_the_brokers_clock_is_written_into_the_batch_in_place() -> None:
    """LOG-3: LogAppendTime."""
    batch = produced(timestamp=5)
    stored, header = check(batch, BROKER_TIME)
    assert stored.obj is batch
    assert (header.max_timestamp, header.uses_log_append_time) == (NOW, True)
    assert {record.timestamp for record in records_of(stored)} == {NOW}
    check_crc(stored, 0, len(stored))


def test_with_the_brokers_clock_the_producers_may_be_anywhere() -> None:
    stored, _ = check(produced(timestamp=NOW + 10**12), BROKER_TIME)
    assert read_header(stored).max_timestamp == NOW


def test_bytes_that_cannot_be_written_to_are_copied() -> None:
    stored, _ = check_batches(memoryview(bytes(produced())), BROKER_TIME, NOW)
    assert not stored.readonly


def test_a_producer_may_not_claim_the_brokers_clock() -> None:
    claimed = with_header(produced(), attributes=8)
    with pytest.raises(InvalidTimestamp):
        check(claimed, BROKER_TIME)
    stored, header = check(claimed)
    assert not header.uses_log_append_time
    check_crc(stored, 0, len(stored))


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize(
    ("wanted", "codec"),
    [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)],
)
def test_the_topics_codec_wins(source: int, wanted: str, codec: int) -> None:
    batch = produced(count=50, codec=source, producer_id=9, producer_epoch=1, base_sequence=4)
    stored, header = check(batch, LogConfig(compression_type=wanted))
    assert header.codec == codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 4)
    assert records_of(stored) == records_of(batch)
    check_crc(stored, 0, len(stored))
    assert not stored.readonly
    if source == codec:
        assert stored.obj is batch


def test_a_batch_whose_records_cannot_be_read_is_invalid_not_corrupt() -> None:
    """Corruption invites the client to send it again, which would not help here."""
    with pytest.raises(InvalidRecord):
        check(with_header(produced(), attributes=1), LogConfig(compression_type="zstd"))
    with pytest.raises(InvalidRecord):
        check(with_header(produced(), count=2, last_offset_delta=1), COMPACTED)


def test_records_must_count_their_offsets_from_zero() -> None:
    batch = build_batch([Record(0, NOW, b"k"), Record(5, NOW, b"k")], last_offset=1)
    with pytest.raises(InvalidRecord):
        check(batch, COMPACTED)


def test_the_broker_itself_may_write_control_batches() -> None:
    marker = build_batch(
        [Record(0, NOW, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 5))],
        producer_id=3,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    with pytest.raises(InvalidRecord):
        check(marker)
    zstd = LogConfig(compression_type="zstd")
    stored, header = check(marker, zstd, from_client=False)
    assert bytes(stored) == marker
    assert header.is_control


def test_replicated_batches_are_taken_with_their_offsets() -> None:
    records = produced(base_offset=0) + with_header(produced(), base_offset=10, leader_epoch=4)
    found, size = check_replicated(memoryview(records), 0)
    assert [(batch[0], batch[2]) for batch in found] == [(0, 0), (10, 4)]
    assert size == len(records)


@pytest.mark.parametrize("cut_bytes", [1, 60, 61])
def test_a_replicated_batch_that_is_cut_off_is_left_out(cut_bytes: int) -> None:
    last = with_header(produced(), base_offset=10)
    records = produced() + last[:-cut_bytes]
    found, size = check_replicated(memoryview(records), 0)
    assert ([batch[0] for batch in found], size) == ([0], len(produced()))
    assert check_replicated(memoryview(last[:40]), 0) == ([], 0)


def test_replicated_batches_of_a_newer_epoch_are_left_out_with_all_that_follow() -> None:
    newer = with_header(produced(), base_offset=10, leader_epoch=4)
    older = with_header(produced(), base_offset=20, leader_epoch=3)
    found, size = check_replicated(memoryview(produced() + newer + older), 0, 3)
    assert ([batch[0] for batch in found], size) == ([0], len(produced()))


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (produced() + produced(), InvalidRecord),
        (with_header(produced(), crc=5), CorruptMessage),
        (with_header(produced(), magic=1), CorruptMessage),
        (with_header(produced(), size=30), CorruptMessage),
        (with_header(produced(), last_offset_delta=-3), InvalidRecord),
    ],
)
def test_damaged_or_disordered_replicated_batches_are_refused(
    records: bytearray, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        check_replicated(memoryview(records), 0)


class NoDots:
    """Complains of payloads with a dot, unless a header excuses them."""

    def __init__(self, part: str) -> None:
        self.part = part

    def complaint(
        self, payload: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> str | None:
        excused = payload is None or b"." not in payload or ("dots", b"fine") in headers
        return None if excused else f"its {self.part} has a dot"


NO_DOTS = LogConfig(record_rules=(NoDots("key"), NoDots("value")))


@pytest.mark.parametrize("codec", range(5))
def test_a_rule_of_the_topic_names_each_record_that_it_refuses(codec: int) -> None:
    records = [
        Record(0, NOW, b"k", b"fine"),
        Record(1, NOW, b"k", b"a.b"),
        Record(2, NOW, None, None),
        Record(3, NOW, b"k.k", b"fine"),
    ]
    with pytest.raises(RecordsRefused, match=r"2 of 4 records.*record 1: its value") as caught:
        check(build_batch(records, codec=codec), NO_DOTS)
    assert caught.value.record_errors == ((1, "its value has a dot"), (3, "its key has a dot"))


def test_a_rule_receives_the_headers() -> None:
    batch = build_batch([Record(0, NOW, None, b"a.b", (("dots", b"fine"),))])
    stored, _ = check(batch, NO_DOTS)
    assert stored.obj is batch
