"""The promises of `RaftLog`, which the log on disk and the model in memory keep alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.protocol.batches import headers
from headrace.raft.log import OffsetAndEpoch
from tests.builders.two_raft_logs import InMemory, OnDisk, SomeLog, append, batch_of


@pytest.fixture(params=["in memory", "on disk"])
def one(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SomeLog]:
    made: SomeLog = OnDisk(tmp_path) if request.param == "on disk" else InMemory()
    yield made
    made.close()


def offsets_in(data: bytes) -> list[tuple[int, int]]:
    return [(header.base_offset, header.next_offset) for _, header in headers(data)]


def test_an_empty_log_begins_at_0_in_epoch_0(one: SomeLog) -> None:
    log = one.log
    assert (log.start_offset, log.end_offset, log.last_epoch) == (0, 0, 0)
    assert (log.oldest_snapshot, log.newest_snapshot) == (None, None)
    assert log.end_of_epoch(3) == (0, 0)
    assert log.read(0, 1000) == b""


def test_batches_are_read_as_they_were_appended(one: SomeLog) -> None:
    first, second = batch_of(0, 1, count=3), batch_of(3, 2)
    one.log.append(memoryview(bytearray(first + second)))
    assert one.log.read(0, 1000) == first + second
    assert one.log.read(3, 1000) == second
    assert (one.log.end_offset, one.log.last_epoch) == (4, 2)


def test_a_read_from_the_middle_of_a_batch_returns_all_of_it(one: SomeLog) -> None:
    append(one, 1, count=5)
    assert offsets_in(one.log.read(2, 1000)) == [(0, 5)]


def test_a_read_returns_whole_batches_and_at_least_one(one: SomeLog) -> None:
    for _ in range(3):
        append(one, 1, size=50)
    size = len(one.log.read(2, 1000))
    assert offsets_in(one.log.read(0, 1)) == [(0, 1)]
    assert offsets_in(one.log.read(0, 2 * size)) == [(0, 1), (1, 2)]
    assert offsets_in(one.log.read(0, 2 * size - 1)) == [(0, 1)]


def test_a_read_at_the_end_is_empty(one: SomeLog) -> None:
    append(one, 1)
    assert one.log.read(1, 1000) == b""


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, (0, 0)), (1, (0, 0)), (2, (3, 2)), (3, (3, 2)), (4, (3, 2)), (5, (5, 5)), (9, (5, 5))],
)
def test_epochs_end_where_the_next_ones_begin(
    one: SomeLog, epoch: int, end: tuple[int, int]
) -> None:
    append(one, 2, count=3)
    append(one, 5, count=2)
    assert one.log.end_of_epoch(epoch) == end


def test_truncated_records_and_their_epochs_are_gone(one: SomeLog) -> None:
    for epoch in (1, 2, 2, 3):
        append(one, epoch)
    one.log.truncate(2)
    assert (one.log.end_offset, one.log.last_epoch) == (2, 2)
    assert one.log.end_of_epoch(3) == (2, 2)
    append(one, 4)
    assert offsets_in(one.log.read(0, 1000)) == [(0, 1), (1, 2), (2, 3)]
    assert one.log.end_of_epoch(3) == (2, 2)


def test_a_truncation_at_the_end_changes_nothing(one: SomeLog) -> None:
    append(one, 1)
    one.log.truncate(1)
    assert (one.log.end_offset, one.log.last_epoch) == (1, 1)


def test_all_records_can_be_truncated(one: SomeLog) -> None:
    append(one, 1)
    one.log.truncate(0)
    assert (one.log.start_offset, one.log.end_offset, one.log.last_epoch) == (0, 0, 0)


def test_a_log_begins_at_its_oldest_snapshot(one: SomeLog) -> None:
    for epoch in (1, 1, 2, 3):
        append(one, epoch)
    taken = one.snapshot(3)
    log = one.log
    assert taken == (3, 2)
    assert (log.oldest_snapshot, log.newest_snapshot) == (taken, taken)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (3, 4, 3)
    assert offsets_in(log.read(3, 1000)) == [(3, 4)]
    assert log.end_of_epoch(1) == (3, 1)
    assert log.end_of_epoch(2) == (3, 2)
    assert log.end_of_epoch(3) == (4, 3)


def test_a_snapshot_at_the_end_leaves_its_epoch(one: SomeLog) -> None:
    append(one, 4)
    one.snapshot(1)
    assert (one.log.start_offset, one.log.end_offset, one.log.last_epoch) == (1, 1, 4)
    assert one.log.end_of_epoch(4) == (1, 4)
    append(one, 4)
    assert one.log.end_of_epoch(4) == (2, 4)


def test_a_snapshot_is_read_in_pieces(one: SomeLog) -> None:
    append(one, 1)
    taken = one.snapshot(1)
    size = one.log.snapshot_size(taken)
    assert size is not None
    pieces = [one.log.read_snapshot(taken, position, 7) for position in range(0, size, 7)]
    assert b"".join(pieces) == one.log.read_snapshot(taken, 0, size)
    assert one.log.snapshot_size(OffsetAndEpoch(1, 9)) is None


def test_a_received_snapshot_replaces_the_log(one: SomeLog, tmp_path: Path) -> None:
    leader: SomeLog = OnDisk(tmp_path / "leader") if isinstance(one, OnDisk) else InMemory()
    for epoch in (1, 2, 2):
        append(leader, epoch)
    taken = leader.snapshot(3)
    append(one, 1, count=9)
    size = leader.log.snapshot_size(taken)
    assert size is not None
    one.log.receive_snapshot(taken, 0, b"the start of another attempt")
    for position in range(0, size, 50):
        one.log.receive_snapshot(taken, position, leader.log.read_snapshot(taken, position, 50))
    one.log.install_snapshot(taken)
    log = one.log
    assert (log.start_offset, log.end_offset, log.last_epoch) == (3, 3, 2)
    assert (log.oldest_snapshot, log.newest_snapshot) == (taken, taken)
    append(one, 5)
    assert offsets_in(log.read(3, 1000)) == [(3, 4)]
    leader.close()
