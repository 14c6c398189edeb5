"""The shared ring of the newest records."""

import asyncio

import pytest
from confluent_kafka import Message

from headrace.errors import UnknownServerError
from headrace.rest.push.entries import Entry
from headrace.rest.push.tail import Ring, Tail


def entry(offset: int, partition: int = 0, size: int = 10) -> Entry:
    return Entry(
        Message(topic="t", partition=partition, offset=offset, value=b"x" * size, timestamp=(1, 5))
    )


def test_a_cursor_in_the_ring_gets_the_following_records() -> None:
    ring = Ring({0: 5}, 1 << 20)
    ring.append([entry(5), entry(6), entry(7)])
    found = ring.after(1)
    assert [one.offset for one in found or ()] == [6, 7]


def test_the_id_of_a_record_is_the_position_after_it_in_all_partitions() -> None:
    ring = Ring({0: 5, 1: 0}, 1 << 20)
    ring.append([entry(5), entry(0, 1), entry(9)])
    assert [one.id for one in ring.after(0) or ()] == ["0:6,1:0", "0:6,1:1", "0:10,1:1"]


def test_the_ring_stays_within_its_bytes_and_overtakes_the_slow() -> None:
    ring = Ring({0: 0}, 100_000)
    for offset in range(200):
        ring.append([entry(offset, size=1_000)])
    assert (len(ring) <= 100_000 // 3_000, ring.after(0)) == (True, None)


def test_the_ring_stays_within_its_number_of_records() -> None:
    ring = Ring({0: 0}, 1 << 40)
    ring.append([entry(offset) for offset in range(30_000)])
    assert (len(ring) <= 10_000, ring.end) == (True, 30_000)


def test_a_piece_is_bounded_in_bytes_and_the_next_one_follows() -> None:
    ring = Ring({0: 0}, 1 << 24)
    ring.append([entry(offset, size=10_000) for offset in range(20)])
    found = [[one.offset for one in ring.after(cursor) or ()] for cursor in (0, 6)]
    assert found == [[*range(6)], [*range(6, 12)]]


def test_a_piece_is_bounded_in_number() -> None:
    ring = Ring({0: 0}, 1 << 24)
    ring.append([entry(offset) for offset in range(300)])
    assert len(ring.after(0) or ()) == 100


def test_a_record_larger_than_a_piece_is_sent_alone() -> None:
    ring = Ring({0: 0}, 1 << 24)
    ring.append([entry(0, size=500_000), entry(1)])
    assert [one.offset for one in ring.after(0) or ()] == [0]


def test_a_record_that_is_larger_than_the_ring_is_not_kept() -> None:
    ring = Ring({0: 0}, 1_000)
    ring.append([entry(0, size=5_000)])
    assert (len(ring), ring.end, ring.positions) == (0, 1, {0: 1})


@pytest.mark.parametrize(
    ("positions", "is_held"),
    [({0: 4}, False), ({0: 5}, True), ({0: 99}, True), ({0: 5, 1: 0}, False)],
)
def test_the_ring_covers_positions_within_it(positions: dict[int, int], is_held: bool) -> None:
    ring = Ring({0: 5}, 1 << 20)
    ring.append([entry(5), entry(6)])
    assert ring.holds_all_after(positions) is is_held


def test_dropped_records_are_missing_from_the_ring() -> None:
    ring = Ring({0: 0}, 5_000)
    for offset in range(50):
        ring.append([entry(offset, size=500)])
    assert not ring.holds_all_after({0: 0})


async def test_a_record_wakes_all_waiting_clients() -> None:
    tail = Tail(Ring({0: 0}, 1 << 20))
    waiting = [asyncio.create_task(tail.after(0, 30)) for _ in range(3)]
    await asyncio.sleep(0)
    tail.append([entry(0)])
    found = await asyncio.gather(*waiting)
    assert [len(one or ()) for one in found] == [1, 1, 1]


async def test_all_waiting_clients_get_a_failure() -> None:
    tail = Tail(Ring({0: 0}, 1 << 20))
    waiting = asyncio.create_task(tail.after(0, 30))
    await asyncio.sleep(0)
    tail.fail(UnknownServerError("gone"))
    with pytest.raises(UnknownServerError):
        await waiting


async def test_no_record_in_time_is_an_empty_answer() -> None:
    assert await Tail(Ring({0: 0}, 1 << 20)).after(0, 0) == []
