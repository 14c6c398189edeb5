"""The index files of a segment, bit for bit."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.storage.indexes import (
    AbortedTransaction,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    last_time_entry,
)

ENTRIES = st.lists(st.tuples(st.integers(1, 1 << 20), st.integers(1, 1 << 20)), max_size=20)


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex()
    for offset, position in entries:
        index.append(offset, position)
    return index


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    index = TimeIndex()
    for timestamp, offset in entries:
        index.append_if_later(timestamp, offset)
    return index


def test_an_offset_index_is_pairs_of_big_endian_numbers() -> None:
    assert offset_index((5, 300), (9, 70_000)).to_bytes() == struct.pack(">4i", 5, 300, 9, 70_000)


def test_a_time_index_is_a_timestamp_and_an_offset_each() -> None:
    index = time_index((1_700_000_000_000, 5), (1_700_000_000_001, 9))
    expected = struct.pack(">qiqi", 1_700_000_000_000, 5, 1_700_000_000_001, 9)
    assert index.to_bytes() == expected
    assert last_time_entry(expected) == (1_700_000_000_001, 9)
    assert last_time_entry(b"") is None


@given(ENTRIES)
def test_indexes_are_read_as_they_were_written(steps: list[tuple[int, int]]) -> None:
    offsets, times = OffsetIndex(), TimeIndex()
    first = second = 0
    for first_step, second_step in steps:
        first, second = first + first_step, second + second_step
        offsets.append(first, second)
        times.append_if_later(second, first)
    read = OffsetIndex.from_bytes(offsets.to_bytes(), second + 1)
    assert (read.offsets, read.positions) == (offsets.offsets, offsets.positions)
    read_times = TimeIndex.from_bytes(times.to_bytes())
    assert (read_times.timestamps, read_times.offsets) == (times.timestamps, times.offsets)


@given(st.binary(max_size=100))
def test_any_bytes_are_an_index_or_an_error(content: bytes) -> None:
    for read in (
        lambda: OffsetIndex.from_bytes(content, 1 << 20),
        lambda: TimeIndex.from_bytes(content),
        lambda: TransactionIndex.from_bytes(content),
    ):
        try:
            read()
        except CorruptIndex:
            continue


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param((5, 300, 9), id="half an entry"),
        pytest.param((5, 300, 0, 0), id="the empty end of a file made too large"),
        pytest.param((5, 300, 9, 1000), id="past the segment"),
        pytest.param((9, 300, 5, 400), id="offsets that do not ascend"),
        pytest.param((5, 300, 9, 200), id="positions that do not ascend"),
        pytest.param((-1, 300), id="before the segment"),
    ],
)
def test_an_index_that_cannot_be_right_is_refused(entries: tuple[int, ...]) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex.from_bytes(struct.pack(f">{len(entries)}i", *entries), 1000)


def test_timestamps_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(CorruptIndex):
        TimeIndex.from_bytes(struct.pack(">qiqi", 5, 1, 4, 2))


def test_the_position_at_or_before_an_offset_is_found() -> None:
    index = offset_index((5, 300), (9, 700))
    assert [index.floor_position(offset) for offset in (0, 4, 5, 8, 9, 100)] == [
        0,
        0,
        300,
        300,
        700,
        700,
    ]
    assert [index.last_boundary_before(at) for at in (299, 300, 699, 900)] == [0, 300, 300, 700]


def test_a_timestamp_that_is_not_later_makes_no_entry() -> None:
    index = time_index((-1, 0), (10, 1), (10, 2), (9, 3), (11, 4))
    assert list(index.timestamps) == [10, 11]
    assert [index.floor_offset(timestamp) for timestamp in (9, 10, 11, 12)] == [0, 1, 4, 4]


def test_truncated_indexes_drop_the_removed_entries() -> None:
    offsets, times = offset_index((5, 300), (9, 700)), time_index((10, 5), (11, 9))
    offsets.truncate(9)
    times.truncate(9)
    assert (len(offsets), len(times)) == (1, 1)


def test_aborted_transactions_have_kafkas_entries() -> None:
    index = TransactionIndex()
    index.append(AbortedTransaction(7, 3, 9, 10))
    content = index.to_bytes()
    assert content == struct.pack(">hqqqq", 0, 7, 3, 9, 10)
    assert TransactionIndex.from_bytes(content).aborted == index.aborted
    assert list(index.overlapping(0, 3)) == []
    assert list(index.overlapping(9, 20)) == index.aborted
    assert list(index.overlapping(10, 20)) == []
    assert index.covers(10)
    assert not index.covers(11)
    index.truncate(9)
    assert len(index) == 0
