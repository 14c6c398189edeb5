"""Large records as chunks, split and joined as values."""

from typing import Any

import pytest
from confluent_kafka import Message

from headrace.client.chunks import (
    COUNT,
    ID,
    INDEX,
    SIZE,
    ChunkedRecordTooLarge,
    Joiner,
    Sessions,
    chunk_of,
    processed_by,
    split,
)

PLACE = ("t", 0)
LONG_MS = 600_000


def message(offset: int, value: bytes, headers: Any = None, timestamp_ms: int = 0) -> Message:
    return Message(
        topic="t",
        partition=0,
        offset=offset,
        value=value,
        headers=headers,
        timestamp=(1, timestamp_ms),
    )


def chunks(value: bytes, session: str = "s", number: int = 0, own: Any = None) -> list[Any]:
    """The chunks of a value in pieces of four bytes, as pairs of a piece and its headers."""
    return list(split(value, 4, (session, number), own))


def logged(*parts: Any, timestamp_ms: int = 0) -> list[Message]:
    """Records at the offsets 0, 1, 2 and so on; plain bytes are ordinary records."""
    pairs = [(part, None) if isinstance(part, bytes) else part for part in parts]
    return [
        message(offset, value, headers, timestamp_ms)
        for offset, (value, headers) in enumerate(pairs)
    ]


def joiner(memory: int = 1_000) -> Joiner:
    return Joiner(memory, LONG_MS)


def joined(joiner: Joiner, batch: list[Message], now_ms: int = 0) -> list[bytes | None]:
    assert joiner.has_work(batch)
    whole = [joiner.join(one, now_ms) for one in batch]
    return [one.value() for one in whole if one is not None]


def test_chunks_come_back_as_one_record_with_its_own_headers() -> None:
    """PUL-8"""
    batch = logged(*chunks(b"0123456789", own=[("colour", b"red")]))
    reader = joiner()
    found = [one for one in batch if reader.join(one, 0)]
    assert [(one.offset(), one.value(), one.headers()) for one in found] == [
        (2, b"0123456789", [("colour", b"red")])
    ]


def test_a_record_without_headers_has_none_after_joining() -> None:
    """PUL-8"""
    batch = logged(*chunks(b"01234"))
    reader = joiner()
    found = [one for one in batch if reader.join(one, 0)]
    assert found[0].headers() is None


def test_ordinary_records_need_no_work() -> None:
    plain = [message(0, b"a"), message(1, b"b", [("colour", b"red"), ("size", None)])]
    assert not joiner().has_work(plain)


def test_chunks_of_several_producers_may_be_interleaved() -> None:
    """PUL-8"""
    one, two = chunks(b"aaaabbbb", "one"), chunks(b"ccccdddd", "two")
    batch = logged(one[0], two[0], b"small", one[1], two[1])
    assert joined(joiner(), batch) == [b"small", b"aaaabbbb", b"ccccdddd"]


def test_a_record_with_a_missing_chunk_is_never_returned() -> None:
    """PUL-8"""
    first, _, last = chunks(b"0123456789")
    reader = joiner()
    assert joined(reader, logged(first, last, b"next")) == [b"next"]
    assert reader.dropped[0] == (PLACE, 0, "a chunk is missing")


def test_a_record_without_its_first_chunk_is_never_returned() -> None:
    """PUL-8"""
    reader = joiner()
    assert joined(reader, logged(*chunks(b"0123456789")[1:])) == []
    assert [dropped.reason for dropped in reader.dropped] == ["its first chunks were not read"]


def test_a_record_that_its_producer_left_is_dropped_at_its_next_record() -> None:
    """PUL-8"""
    left, following = chunks(b"aaaabbbb", number=0), chunks(b"ccccdddd", number=1)
    reader = joiner()
    assert joined(reader, logged(left[0], *following)) == [b"ccccdddd"]
    assert reader.hold(PLACE, 3) == 3


def test_copies_of_chunks_are_ignored() -> None:
    """PUL-8"""
    first, last = chunks(b"aaaabbbb")
    assert joined(joiner(), logged(first, first, last)) == [b"aaaabbbb"]


def test_a_dead_producers_record_is_dropped_when_both_clocks_agree() -> None:
    """PUL-8"""
    reader = joiner()
    joined(reader, logged(chunks(b"aaaabbbb")[0]))
    reader.join(message(1, b"late by the reader's clock", None, 1), LONG_MS + 1)
    reader.join(message(2, b"late by its timestamp", None, LONG_MS + 1), 1)
    assert reader.dropped == []
    reader.join(message(3, b"late", None, LONG_MS + 1), LONG_MS + 1)
    assert reader.dropped == [(PLACE, 0, "no chunk arrived within chunk.timeout.ms")]
    assert reader.hold(PLACE, 4) == 4


def test_memory_is_bounded_by_the_sizes_that_first_chunks_announce() -> None:
    """PUL-8"""
    reader = joiner(memory=15)
    joined(reader, logged(chunks(b"aaaabbbb", "one")[0]))
    with pytest.raises(ChunkedRecordTooLarge, match=r"t-0 at offset 1: .*chunk\.memory \(15\)"):
        reader.join(message(1, *chunks(b"ccccdddd", "two")[0]), 0)


def test_old_records_give_up_their_memory_for_new_ones() -> None:
    """PUL-8"""
    reader = joiner(memory=15)
    joined(reader, logged(chunks(b"aaaabbbb", "one")[0]))
    fresh = logged(b"before", *chunks(b"ccccdddd", "two"), timestamp_ms=LONG_MS + 1)[1:]
    assert joined(reader, fresh) == [b"ccccdddd"]
    assert "its memory is needed" in reader.dropped[0].reason


def test_memory_is_free_again_after_a_record() -> None:
    """PUL-8"""
    reader = joiner(memory=8)
    for number in range(3):
        assert joined(reader, logged(*chunks(b"aaaabbbb", number=number))) == [b"aaaabbbb"]


@pytest.mark.parametrize("pieces", [(b"aaaa", b"bbbbb"), (b"aaaa", b"bbb"), (b"", b"aaaabbbb")])
def test_chunks_of_another_size_than_announced_are_dropped(pieces: tuple[bytes, ...]) -> None:
    """PUL-8"""
    headers = [headers for _, headers in chunks(b"aaaabbbb")]
    reader = joiner()
    assert joined(reader, logged(*zip(pieces, headers, strict=True))) == []
    assert reader.hold(PLACE, 2) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (ID, b"s-x"),
        (ID, b""),
        (INDEX, b"2"),
        (INDEX, b"-1"),
        (COUNT, b"9"),
        (SIZE, b"1e3"),
        (SIZE, "²".encode()),
        (SIZE, None),
        (SIZE, b"9" * 5_000),
    ],
)
def test_records_with_invalid_chunk_headers_are_ordinary(name: str, value: bytes | None) -> None:
    """PUL-8"""
    piece, headers = chunks(b"aaaabbbb")[0]
    odd = message(0, piece, list({**dict(headers), name: value}.items()))
    assert chunk_of(odd) is None
    assert joiner().join(odd, 0) is odd


def test_a_commit_stays_before_the_first_chunk_of_an_incomplete_record() -> None:
    """PUL-8"""
    first, last = chunks(b"aaaabbbb")
    reader = joiner()
    batch = logged(b"before", first, b"between", last)
    joined(reader, batch[:3])
    (point,) = reader.commit_points({PLACE: 3})
    assert (point.offset, processed_by(point.metadata)) == (1, 3)
    joined(reader, batch[3:])
    assert [reader.hold(PLACE, offset) for offset in (1, 3, 4)] == [1, 1, 4]


def test_records_processed_before_a_restart_are_skipped_and_later_ones_are_not() -> None:
    """PUL-8"""
    first, last = chunks(b"aaaabbbb")
    reader = joiner()
    reader.skip_processed(PLACE, 2)
    batch = logged(first, b"processed", b"new", last)
    assert joined(reader, batch) == [b"new", b"aaaabbbb"]


def test_a_seek_or_a_revocation_drops_the_state_of_its_partitions() -> None:
    """PUL-8"""
    first, last = chunks(b"aaaabbbb")
    reader = joiner()
    joined(reader, logged(first))
    reader.skip_processed(PLACE, 9)
    reader.drop({PLACE})
    assert reader.hold(PLACE, 5) == 5
    assert joined(reader, logged(last, b"next")) == [b"next"]


@pytest.mark.parametrize("metadata", [None, "", "mine", "headrace.chunks.processed=x"])
def test_metadata_of_others_is_no_progress(metadata: str | None) -> None:
    assert processed_by(metadata) is None


def test_concurrent_callers_have_sessions_of_their_own() -> None:
    """PUL-8"""
    sessions = Sessions()
    one, two = sessions.take(), sessions.take()
    assert one[0] != two[0]
    sessions.give_back(one)
    assert sessions.take() == (one[0], 1)
