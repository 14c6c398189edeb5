"""A log's reads, flushes and deletions, with a disk that works and with one that does not."""

import errno
from pathlib import Path

import pytest

from headrace.errors import KafkaStorageError, OffsetOutOfRange
from headrace.protocol.batches import HEADER_SIZE, headers, read_header
from headrace.runtime import files
from headrace.storage.log import Log
from headrace.storage.recovery import load_log
from headrace.storage.segment import Segment
from tests.builders.failing_disk import failing, failing_writes
from tests.builders.logs import (
    EVERYTHING,
    NOW,
    all_records,
    append,
    names_in,
    new_log,
    records_in,
    reopened,
    slices,
    stored,
    values_of,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path)


def test_preallocate_reserves_a_segment_and_releases_unused_space(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=1 << 20, preallocate=True)
    path = Path(log.segments[0].path(".log"))
    if not path.stat().st_blocks:
        pytest.skip("this file system reserves nothing")
    assert path.stat().st_blocks * 512 >= 1 << 20
    append(log, b"x")
    assert path.stat().st_size == len(stored(log)) < 1000, "only readers of blocks may notice"
    log.roll()
    assert path.stat().st_blocks * 512 < 1 << 19


# A disk that does not work


def test_a_full_disk_refuses_writes_and_serves_reads_until_there_is_room(log: Log) -> None:
    append(log, b"before")
    size = len(stored(log))
    for room in (0, 1, 40, 70):
        with (
            failing_writes(errno.ENOSPC, after_bytes=room),
            pytest.raises(KafkaStorageError, match="the disk refuses"),
        ):
            append(log, b"refused")
        assert len(stored(log)) == size, "a torn batch"
        assert values_of(log) == [b"before"]
    assert append(log, b"after").base_offset == 1
    assert values_of(reopened(log)) == [b"before", b"after"]


@pytest.mark.parametrize("operation", ["create", "create_empty", "write"])
def test_a_disk_that_is_full_at_a_roll_takes_writes_again_later(
    tmp_path: Path, operation: str
) -> None:
    log = new_log(tmp_path, segment_bytes=200)
    append(log, b"x" * 100)
    with failing(operation, errno.ENOSPC), pytest.raises(KafkaStorageError):
        append(log, b"y" * 100)
    append(log, b"z" * 100)
    assert len(log.segments) == 2
    assert values_of(log) == values_of(reopened(log)) == [b"x" * 100, b"z" * 100]


def test_a_full_disk_at_the_start_of_an_epoch_does_not_lose_the_epoch(log: Log) -> None:
    append(log, leader_epoch=0)
    with failing("write", errno.ENOSPC), pytest.raises(KafkaStorageError):
        append(log, leader_epoch=1)
    append(log, leader_epoch=1)
    assert [entry.epoch for entry in reopened(log).leader_epochs.entries] == [0, 1]


def test_a_broken_disk_takes_the_log_offline(log: Log) -> None:
    append(log)
    reported: list[OSError] = []
    log.on_failure = reported.append
    with failing_writes(errno.EIO), pytest.raises(KafkaStorageError):
        append(log)
    assert [error.errno for error in reported] == [errno.EIO]
    with pytest.raises(KafkaStorageError):
        append(log)
    with pytest.raises(KafkaStorageError):
        log.read(0, EVERYTHING, 1)


def test_a_failed_sync_takes_the_log_offline(log: Log) -> None:
    append(log)
    with failing("fsync"), pytest.raises(KafkaStorageError):
        log.flush()
    assert log.failure is not None


# Reading


def test_reading_at_the_end_gives_nothing(log: Log) -> None:
    append(log)
    assert log.read(1, EVERYTHING, 1).size == 0


@pytest.mark.parametrize("offset", [-1, 2])
def test_reading_outside_of_the_log_is_an_error(log: Log, offset: int) -> None:
    append(log)
    with pytest.raises(OffsetOutOfRange):
        log.read(offset, EVERYTHING, 1)


def test_a_consumer_never_sees_uncommitted_records(log: Log) -> None:
    for _ in range(3):
        append(log, b"two", b"records")
    assert records_in(log.read(0, EVERYTHING, 2).read())[-1].offset == 1
    assert log.read(2, EVERYTHING, 2).size == 0
    assert records_in(log.read(2, EVERYTHING, 4).read())[-1].offset == 3


def test_a_slice_starts_with_the_batch_that_holds_the_offset(log: Log) -> None:
    """LOG-13: any offset can be asked for; consumers skip what precedes it in its batch."""
    append(log, b"0", b"1", b"2")
    append(log, b"3")
    assert [record.offset for record in records_in(log.read(1, EVERYTHING, 4).read())] == [
        0,
        1,
        2,
        3,
    ]


def test_slices_hold_whole_batches_only(log: Log) -> None:
    for _ in range(100):
        append(log, b"x" * 100)
    size = log.size_bytes // 100
    for data in slices(log, size_max=3 * size + size // 2):
        assert len(data) % size == 0


def test_a_batch_that_is_too_large_is_given_whole_if_it_is_the_first(log: Log) -> None:
    append(log, b"x" * 1000)
    append(log, b"y")
    size = read_header(stored(log)).size
    assert log.read(0, 10, 2).size == size
    assert log.read(0, 10, 2, at_least_one=False).size == 0
    assert log.read(0, size, 2, at_least_one=False).size == size


def test_every_consumer_reads_the_same_however_it_fetches(tmp_path: Path) -> None:
    """LOG-18"""
    log = new_log(tmp_path, segment_bytes=2000, index_interval_bytes=300)
    for number in range(100):
        append(log, b"%d" % number)
    expected = [b"%d" % number for number in range(100)]
    for size_max in (1, 100, 1000, EVERYTHING):
        assert [record.value for record in all_records(log, size_max=size_max)] == expected


def count_preads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    real = files.pread

    def pread(fd: int, size: int, position: int) -> bytes:
        sizes.append(size)
        return real(fd, size, position)

    monkeypatch.setattr(files, "pread", pread)
    return sizes


def test_a_consumer_at_the_tail_costs_no_look_at_the_file(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-17"""
    append(log)
    preads = count_preads(monkeypatch)
    offset = 1
    assert log.read(offset, EVERYTHING, 1).size == 0
    for _ in range(20):
        append(log)
        append(log)
        found = log.read(offset, EVERYTHING, log.log_end_offset)
        assert found.size > 0
        offset = log.log_end_offset
    assert preads == []


def test_a_consumer_that_reads_on_costs_one_small_look(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(500):
        append(log, b"x" * 100)
    preads = count_preads(monkeypatch)
    offset = reads = 0
    while offset < 450:
        found = log.read(offset, 10_000, log.log_end_offset)
        offset += found.size // (HEADER_SIZE + 110)
        reads += 1
    assert len(preads) < reads
    assert set(preads) == {8}


def test_a_slice_outlives_its_segment(tmp_path: Path) -> None:
    log = new_log(tmp_path, file_delete_delay_ms=0)
    append(log, b"read me")
    found = log.read(0, EVERYTHING, 1)
    log.roll()
    log.delete_records_before(1)
    for path in log.resources.deletions.due(NOW):
        Path(path).unlink(missing_ok=True)
    assert records_in(found.read())[0].value == b"read me"


def test_closed_segments_are_open_only_as_long_as_there_is_room(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=200)
    log.resources.open_files._max = 3
    for _ in range(20):
        append(log, b"x" * 100)
    assert len(values_of(log)) == 20
    assert len(log.resources.open_files) == 3


# Flushing


def test_a_flush_is_due_after_so_many_messages(tmp_path: Path) -> None:
    log = new_log(tmp_path, flush_messages=3)
    append(log, b"1", b"2")
    assert not log.flush_needed(NOW)
    append(log, b"3")
    assert log.flush_needed(NOW)
    plan = log.plan_flush()
    plan.run()
    append(log, b"meanwhile")
    log.flushed(plan, NOW)
    assert (log.recovery_point, log.unflushed_messages) == (3, 1)


def test_a_flush_is_due_after_so_long(tmp_path: Path) -> None:
    log = new_log(tmp_path, flush_ms=1000)
    log.last_flush_ms = NOW
    append(log)
    assert not log.flush_needed(NOW + 999)
    assert log.flush_needed(NOW + 1000)


def test_a_sealed_segment_is_due_for_a_flush(log: Log) -> None:
    append(log)
    log.roll()
    append(log)
    plan = log.plan_due_flush(NOW)
    assert plan is not None
    plan.run()
    log.flushed(plan, NOW)
    assert log.recovery_point == 1
    assert log.plan_due_flush(NOW) is None


def test_a_flush_syncs_every_segment_since_the_recovery_point(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=400)
    for _ in range(3):
        append(log, b"x" * 100)
    assert len(log.plan_flush().logs) == 2
    log.flush()
    for _ in range(2):
        append(log, b"x" * 100)
    assert len(log.plan_flush().logs) == 2  # The one that was active then, and the new one.


# Forgetting


def test_deleting_records_moves_the_start_and_drops_whole_segments(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=400)
    for _ in range(6):
        append(log, b"x" * 100)
    assert log.delete_records_before(3) == 3
    assert [segment.base_offset for segment in log.segments] == [2, 4]
    assert [record.offset for record in all_records(log)] == [3, 4, 5]
    with pytest.raises(OffsetOutOfRange):
        log.read(2, EVERYTHING, 6)
    assert "00000000000000000000.log.deleted" in names_in(log)
    assert log.delete_records_before(1) == 3, "the start never goes back"


def test_records_that_are_not_committed_cannot_be_deleted(log: Log) -> None:
    append(log)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(2)


def test_deleting_every_segment_leaves_an_empty_one(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=200)
    for _ in range(3):
        append(log, b"x" * 100)
    log.delete_segments(list(log.segments))
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert [segment.base_offset for segment in log.segments] == [3]
    assert append(log).base_offset == 3


def test_deleted_files_go_after_their_delay(tmp_path: Path) -> None:
    log = new_log(tmp_path, file_delete_delay_ms=60_000)
    append(log)
    log.roll()
    log.delete_records_before(1)
    deletions = log.resources.deletions
    assert deletions.due(NOW) == []
    assert deletions.due(NOW + 59_999) == []
    gone = deletions.due(NOW + 60_000)
    assert f"{log.directory}/00000000000000000000.log.deleted" in gone
    assert len(deletions) == 0


# Truncating, as followers do


def test_truncating_takes_back_offsets_epochs_and_producers(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=400)
    for number in range(8):
        append(
            log,
            b"x" * 100,
            leader_epoch=number // 4,
            producer_id=7,
            producer_epoch=0,
            base_sequence=number,
        )
    log.truncate_to(3)
    assert (log.log_end_offset, log.high_watermark) == (3, 3)
    assert [entry.epoch for entry in log.leader_epochs.entries] == [0]
    assert log.producers.entries[7].last_sequence == 2
    assert append(log, producer_id=7, producer_epoch=0, base_sequence=3).base_offset == 3


def test_truncating_removes_the_snapshot_of_a_stop(log: Log) -> None:
    for sequence in range(3):
        append(log, producer_id=7, producer_epoch=0, base_sequence=sequence)
    log = reopened(log, clean=True)
    log.truncate_to(2)
    assert log.producers.entries[7].last_sequence == 1


def test_truncating_drops_positions_of_readers(log: Log) -> None:
    append(log, b"x" * 100)
    append(log, b"x" * 100)
    assert log.read(2, EVERYTHING, 2).size == 0
    log.truncate_to(1)
    append(log, b"short")
    append(log, b"short")
    assert records_in(log.read(2, EVERYTHING, 3).read())[0].offset == 2


def test_truncating_below_the_first_segment_restarts_the_log_there(log: Log) -> None:
    append(log)
    append(log)
    log.truncate_fully_and_start_at(10)
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert append(log).base_offset == 5


def test_truncating_before_the_start_moves_the_start(log: Log) -> None:
    for _ in range(4):
        append(log)
    log.delete_records_before(3)
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 2, 2)


def test_truncating_within_a_batch_takes_the_whole_batch(log: Log) -> None:
    """Otherwise the log would never get the records before the offset again."""
    append(log, b"1")
    append(log, b"2", b"3", b"4")
    log.truncate_to(3)
    assert log.log_end_offset == 1
    assert append(log, b"new").base_offset == 1


def test_truncating_at_the_end_takes_back_an_epoch_without_records(log: Log) -> None:
    append(log, leader_epoch=1)
    log.begin_epoch(3)
    log.truncate_to(1)
    assert [entry.epoch for entry in log.leader_epochs.entries] == [1]
    append(log, leader_epoch=3)
    assert log.leader_epochs.entries[-1].start_offset == 1


# Compaction's swap


def test_compacted_segments_take_the_place_of_old_ones(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=200)
    for number in range(4):
        append(log, b"%d" % number * 100)
    old = log.segments[:3]
    cleaned = Segment.create(log.directory, 0, log.resources, suffix=".cleaned")
    kept = bytes(log.read(2, EVERYTHING, 3).read())
    for position, header in headers(kept):
        cleaned.write(kept)
        cleaned.note_batch(position, header.size, header.last_offset, header.max_timestamp)
    cleaned.sync()
    log.replace_segments(old, [cleaned])
    assert [record.offset for record in all_records(log)] == [2, 3]
    assert log.read(0, EVERYTHING, 4).size > 0, "a gap is skipped"
    assert not any(name.endswith((".cleaned", ".swap")) for name in names_in(log))
    assert [record.offset for record in all_records(reopened(log))] == [2, 3]


# Coming back


def test_a_log_that_was_closed_is_opened_without_a_look_at_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(tmp_path, segment_bytes=2000)
    for _ in range(20):
        append(log, b"x" * 100)
    log.close()
    preads = count_preads(monkeypatch)
    again = load_log(log.topic_partition, log.directory, log.config, clean=True, recovery_point=20)
    again.advance_high_watermark(20)
    assert again.log_end_offset == 20
    assert preads == [len("version: 0\ntopic_id: ") + 22]
    assert len(values_of(again)) == 20


def test_a_log_continues_after_a_clean_stop(tmp_path: Path) -> None:
    log = new_log(tmp_path, index_interval_bytes=100)
    for number in range(10):
        append(log, timestamps=NOW + number)
    log = reopened(log, clean=True)
    for number in range(10, 20):
        append(log, timestamps=NOW + number)
    log.close()
    index = Path(log.segments[0].path(".index")).read_bytes()
    assert len(index) == len(log.segments[0].index) * 8 > 0
    assert len(values_of(reopened(log, clean=True))) == 20
    found = log.max_timestamp()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 19, 19)
