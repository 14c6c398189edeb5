"""Record batches: headers, checksums, records, and what is refused."""

import struct

import pytest

from headrace.errors import CorruptMessage
from headrace.protocol.batches import (
    HEADER_SIZE,
    BatchHeader,
    Record,
    assemble_batch,
    block_of,
    build_batch,
    check_crc,
    crc32c,
    headers,
    read_header,
    records_of,
    seal,
)
from headrace.protocol.records import scan_records, varint

RECORDS = [
    Record(40, 1_000, b"ada", b"first", (("trace", b"1"), ("empty", None))),
    Record(41, 990, None, b"second"),
    Record(43, 1_020, b"ada", None),
]


def test_a_batch_has_kafkas_bytes() -> None:
    """The layout, written out by hand: a change here would be a change of the format."""
    batch = build_batch([Record(7, 1_000, b"k", b"v", (("h", b"x"),))], leader_epoch=3)
    record = bytes([24, 0, 0, 0, 2]) + b"k" + bytes([2]) + b"v" + bytes([2, 2]) + b"h" + b"\x02x"
    body = struct.pack(">hiqqqhii", 0, 0, 1_000, 1_000, -1, -1, -1, 1) + record
    assert batch == struct.pack(">qiibI", 7, 9 + len(body), 3, 2, crc32c(body)) + body


def test_crc32c_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_header_describes_its_batch() -> None:
    header = read_header(
        build_batch(
            RECORDS,
            codec=4,
            leader_epoch=9,
            producer_id=77,
            producer_epoch=2,
            base_sequence=2**31 - 2,
            transactional=True,
        )
    )
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 43, 44)
    assert (header.base_timestamp, header.max_timestamp, header.count) == (1_000, 1_020, 3)
    assert (header.codec, header.leader_epoch, header.last_sequence) == (4, 9, 1)
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert not header.uses_log_append_time
    assert header.delete_horizon_ms is None


@pytest.mark.parametrize("codec", range(5))
def test_records_come_back_bit_by_bit(codec: int) -> None:
    """LOG-1: key, value, headers and timestamp are opaque and exact."""
    assert records_of(build_batch(RECORDS, codec=codec)) == RECORDS


def test_a_batch_may_span_more_offsets_than_its_records() -> None:
    batch = build_batch(RECORDS, base_offset=38, last_offset=50)
    assert records_of(batch) == RECORDS
    assert (read_header(batch).base_offset, read_header(batch).last_offset) == (38, 50)


def test_log_append_time_replaces_the_times_of_all_records() -> None:
    """LOG-3: the attribute decides which time a reader sees."""
    batch = build_batch(RECORDS, log_append_time_ms=5_000)
    assert {record.timestamp for record in records_of(batch)} == {5_000}
    assert read_header(batch).uses_log_append_time


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = build_batch(RECORDS, delete_horizon_ms=99_000)
    assert read_header(batch).delete_horizon_ms == 99_000
    assert records_of(batch) == RECORDS


def test_a_batch_without_records_keeps_its_offsets() -> None:
    header = read_header(build_batch(RECORDS, producer_id=5, producer_epoch=0, base_sequence=0))
    header.count = 0
    batch = assemble_batch(header, b"")
    assert len(batch) == HEADER_SIZE
    assert records_of(batch) == []
    assert read_header(batch).next_offset == 44


def test_headers_walks_over_whole_batches_only() -> None:
    one, two = build_batch(RECORDS), build_batch(RECORDS, base_offset=44)
    found = list(headers(one + two + one[:70]))
    assert [(position, header.base_offset) for position, header in found] == [
        (0, 40),
        (len(one), 44),
    ]


def test_a_flipped_bit_is_noticed() -> None:
    """LOG-4."""
    batch = build_batch(RECORDS)
    check_crc(batch, 0, len(batch))
    batch[-1] ^= 1
    with pytest.raises(CorruptMessage):
        check_crc(batch, 0, len(batch))


def test_offset_and_leader_epoch_are_outside_the_checksum() -> None:
    batch = build_batch(RECORDS)
    struct.pack_into(">q", batch, 0, 1_000_000)
    struct.pack_into(">i", batch, 12, 12)
    check_crc(batch, 0, len(batch))


@pytest.mark.parametrize("field", ["magic", "size"])
def test_an_impossible_header_is_corrupt(field: str) -> None:
    batch = build_batch(RECORDS)
    struct.pack_into(">b" if field == "magic" else ">i", batch, 16 if field == "magic" else 8, 1)
    with pytest.raises(CorruptMessage):
        read_header(batch)


def test_too_few_bytes_for_a_header_are_corrupt() -> None:
    with pytest.raises(CorruptMessage):
        read_header(build_batch(RECORDS)[:60])


def test_a_batch_that_is_cut_off_has_no_records() -> None:
    with pytest.raises(CorruptMessage):
        records_of(build_batch(RECORDS)[:-1])


@pytest.mark.parametrize("count", [-1, 0, 2, 4, 2**31 - 1])
def test_a_wrong_count_is_corrupt(count: int) -> None:
    batch = build_batch(RECORDS)
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(CorruptMessage):
        records_of(batch)


@pytest.mark.parametrize(
    "block",
    [
        b"\x0c\x00\x00\x00\x01\x01\x02",  # One header, but none follows.
        b"\x0c\x00\x00\x00\x01\x01\x01",  # Minus one headers.
        b"\x0e\x00\x00\x00\x01\x01\x00\x00",  # A byte too many.
        b"\x0c\x00\x00\x00\x7e\x01\x00",  # A key beyond the record.
        b"\x0c\x00\x00\x00\x01\x7e\x00",  # A value beyond the record.
        b"\x7e\x00\x00\x00\x01\x01\x00",  # A record beyond the batch.
        b"\x01\x00\x00\x00\x01\x01\x00",  # A negative length.
        b"\xff\xff\xff\xff\xff\xff\x7f",  # A number of more than 32 bits.
        b"\x14\x00\x00\x00\x01\x01\x02\x01\x01\x00\x00",  # A header without a name.
    ],
)
def test_a_malformed_record_is_corrupt(block: bytes) -> None:
    header = read_header(build_batch(RECORDS))
    header.count = 1
    with pytest.raises(CorruptMessage):
        records_of(assemble_batch(header, block))


def test_a_scan_returns_the_positions_of_records() -> None:
    batch = build_batch(RECORDS)
    block = block_of(batch, 0, read_header(batch))
    spans = list(scan_records(block, 3))
    assert [(span[2], span[3], span[4], span[5]) for span in spans] == [
        (0, 0, b"ada", True),
        (-10, 1, None, True),
        (20, 3, b"ada", False),
    ]
    assert [spans[0][0], spans[0][1], spans[2][1]] == [0, spans[1][0], len(block)]


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, b"\x00"),
        (-1, b"\x01"),
        (63, b"\x7e"),
        (-65, b"\x81\x01"),
        (2**31 - 1, b"\xfe\xff\xff\xff\x0f"),
    ],
)
def test_varints_are_zigzag(number: int, encoded: bytes) -> None:
    assert varint(number) == encoded


def test_sealing_makes_a_changed_batch_valid_again() -> None:
    batch = build_batch(RECORDS)
    struct.pack_into(">q", batch, 35, 123_456)
    seal(batch)
    check_crc(batch, 0, len(batch))
    assert isinstance(read_header(batch), BatchHeader)
