"""Appending to a log: offsets, epochs and times of what was written, and when segments roll."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CorruptMessage, KafkaStorageError, RecordListTooLarge
from headrace.protocol.batches import read_header
from headrace.runtime import files
from headrace.storage.appending import append_as_is, append_as_leader
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.validation import OutOfPlace
from tests.builders.failing_disk import failing_writes
from tests.builders.logs import (
    NOW,
    all_records,
    append,
    batch_of,
    names_in,
    new_log,
    stored,
    values_of,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path)


def test_offsets_count_from_zero_without_gaps(log: Log) -> None:
    """LOG-8"""
    first = append(log, b"a")
    second = append(log, b"b", b"c", b"d")
    assert (first.base_offset, first.last_offset) == (0, 0)
    assert (second.base_offset, second.last_offset) == (1, 3)
    assert [record.offset for record in all_records(log)] == [0, 1, 2, 3]


def test_a_batch_is_stored_as_sent_except_offset_and_epoch(log: Log) -> None:
    """LOG-16: what the producer compressed is not touched."""
    append(log, b"before")
    batch = batch_of(b"x" * 1000, codec=4)
    sent = bytes(batch)
    append_as_leader(log, batch, 5, NOW)
    kept = stored(log)[-len(sent) :]
    assert kept[16:] == sent[16:]
    assert (read_header(kept).base_offset, read_header(kept).leader_epoch) == (1, 5)


def test_an_append_is_one_write(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOG-14, LOG-17"""
    append(log, b"the first append also notes the leader's epoch")
    writes: list[int] = []
    real = files.pwrite

    def pwrite(fd: int, data: Any, position: int) -> int:
        writes.append(len(data))
        return real(fd, data, position)

    monkeypatch.setattr(files, "pwrite", pwrite)
    append(log, *[b"value"] * 100)
    assert len(writes) == 1


def test_a_damaged_batch_is_refused_and_leaves_nothing(log: Log) -> None:
    """LOG-4"""
    append(log, b"good")
    before = stored(log)
    batch = batch_of(b"bad")
    batch[-1] ^= 1
    with pytest.raises(CorruptMessage):
        append_as_leader(log, batch, 0, NOW)
    assert stored(log) == before
    assert log.log_end_offset == 1


def test_append_time_is_returned_if_the_topic_uses_it(tmp_path: Path) -> None:
    """LOG-3"""
    log = new_log(tmp_path, message_timestamp_type="LogAppendTime")
    assert append(log, timestamps=5, now_ms=NOW).log_append_time == NOW
    assert all_records(log)[0].timestamp == NOW


def test_create_time_is_not_returned(log: Log) -> None:
    assert append(log).log_append_time == -1


def test_a_write_that_takes_only_a_part_is_finished(log: Log) -> None:
    with failing_writes(after_bytes=1 << 30):
        real = files.pwrite
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "pwrite", lambda fd, data, at: real(fd, bytes(data)[:7], at))
            append(log, b"in small pieces")
    assert values_of(log) == [b"in small pieces"]


def test_replicated_batches_keep_their_offsets_and_epochs(tmp_path: Path) -> None:
    leader = new_log(tmp_path)
    (tmp_path / "follower").mkdir()
    follower = new_log(tmp_path / "follower")
    append(leader, b"1", b"2", leader_epoch=3)
    append(leader, b"3", leader_epoch=5, producer_id=7, producer_epoch=1, base_sequence=0)
    append_as_is(follower, memoryview(stored(leader)), NOW)
    assert stored(follower) == stored(leader)
    assert follower.log_end_offset == 3
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    assert follower.producers.entries[7].last_sequence == 0


def led(tmp_path: Path, count: int = 6, **fields: Any) -> bytes:
    """The batches of a leader, each of one record, as a follower receives them."""
    (tmp_path / "leader").mkdir()
    leader = new_log(tmp_path / "leader")
    for number in range(count):
        append(leader, b"x" * 100, timestamps=NOW + number, **fields)
    return stored(leader)


def test_a_batch_that_the_leader_cut_off_is_left_out(log: Log, tmp_path: Path) -> None:
    records = led(tmp_path)
    batch_size = len(records) // 6
    assert append_as_is(log, memoryview(records)[:-10], NOW) == 5 * batch_size
    assert append_as_is(log, memoryview(records)[-batch_size:-1], NOW) == 0
    assert append_as_is(log, memoryview(records)[-batch_size:], NOW) == batch_size
    assert stored(log) == records


def test_batches_of_a_newer_epoch_than_that_of_the_fetch_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "leader").mkdir()
    leader, follower = new_log(tmp_path / "leader"), new_log(tmp_path)
    for epoch in (1, 2, 3, 2):
        append(leader, leader_epoch=epoch)
    append_as_is(follower, memoryview(stored(leader)), NOW, 2)
    assert follower.log_end_offset == 2
    assert [(one.epoch, one.start_offset) for one in follower.leader_epochs.entries] == [
        (1, 0),
        (2, 1),
    ]


def test_an_answer_larger_than_a_segment_is_appended_in_pieces(tmp_path: Path) -> None:
    """After segment.bytes was lowered a follower must still follow."""
    records = led(tmp_path)
    follower = new_log(tmp_path, segment_bytes=400)
    append_as_is(follower, memoryview(records), NOW)
    assert [segment.base_offset for segment in follower.segments] == [0, 2, 4]
    assert stored(follower) == records
    tiny = new_log(tmp_path / "leader" / "orders-0", segment_bytes=100)
    append_as_is(tiny, memoryview(records), NOW)
    assert [segment.base_offset for segment in tiny.segments] == list(range(6))
    assert stored(tiny) == records


def test_an_answer_that_fits_a_segment_is_appended_as_a_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    records = led(tmp_path)
    follower = new_log(tmp_path, segment_bytes=len(records))
    with failing_writes(after_bytes=300), pytest.raises(KafkaStorageError):
        append_as_is(follower, memoryview(records), NOW)
    assert (follower.log_end_offset, stored(follower)) == (0, b"")
    append_as_is(follower, memoryview(records), NOW)
    assert stored(follower) == records


def test_a_follower_indexes_a_slice_as_its_leader_indexed_each_batch(tmp_path: Path) -> None:
    (tmp_path / "leader").mkdir()
    leader = new_log(tmp_path / "leader", index_interval_bytes=300)
    follower = new_log(tmp_path, index_interval_bytes=300)
    for drift in (5, -3, 0, 9, 9, -1, 20, 0, 1, 2):
        append(leader, b"x" * 100, timestamps=NOW + drift)
    records = memoryview(stored(leader))
    append_as_is(follower, records[:500], NOW)
    append_as_is(follower, records[follower.segments[0].size :], NOW)
    ours, theirs = follower.segments[0], leader.segments[0]
    assert ours.index.to_bytes() == theirs.index.to_bytes()
    assert ours.time_index.to_bytes() == theirs.time_index.to_bytes()
    assert (ours.max_timestamp, ours.bytes_since_entry, len(ours.index)) == (
        theirs.max_timestamp,
        theirs.bytes_since_entry,
        4,
    )


def test_a_damaged_batch_refuses_its_whole_answer(log: Log, tmp_path: Path) -> None:
    records = bytearray(led(tmp_path))
    records[-1] ^= 1
    with pytest.raises(CorruptMessage):
        append_as_is(log, memoryview(records), NOW)
    assert log.log_end_offset == 0


def test_a_batch_too_far_from_the_end_of_the_log_is_refused(log: Log) -> None:
    far = batch_of(b"far")
    far[0:8] = (1 << 32).to_bytes(8)
    with pytest.raises(OutOfPlace):
        append_as_is(log, far, NOW)
    assert log.log_end_offset == 0


# Rolling


def test_a_full_segment_is_followed_by_another(tmp_path: Path) -> None:
    """LOG-12: a partition is a directory of segments named by their base offsets."""
    log = new_log(tmp_path, segment_bytes=400)
    for _ in range(5):
        append(log, b"x" * 100)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert all(segment.size <= 400 for segment in log.segments)
    assert {f"{base:020d}.log" for base in (0, 2, 4)} <= names_in(log)
    assert {f"{base:020d}.snapshot" for base in (2, 4)} <= names_in(log)


def test_a_segment_rolls_when_timestamps_have_moved_on(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_ms=1000)
    append(log, timestamps=NOW)
    append(log, timestamps=NOW + 1000)
    assert len(log.segments) == 1
    append(log, timestamps=NOW + 1001)
    assert len(log.segments) == 2


def test_without_timestamps_a_segment_rolls_by_the_clock(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_ms=1000)
    append(log, timestamps=-1, now_ms=NOW)
    append(log, timestamps=-1, now_ms=NOW + 1000)
    assert len(log.segments) == 1
    append(log, timestamps=-1, now_ms=NOW + 1001)
    assert len(log.segments) == 2


def test_jitter_only_ever_shortens_a_segment(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_ms=1000, segment_jitter_ms=500)
    append(log, timestamps=NOW)
    append(log, timestamps=NOW + 500)
    assert len(log.segments) == 1
    append(log, timestamps=NOW + 1001)
    assert len(log.segments) == 2


def test_a_segment_with_a_full_index_rolls(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_index_bytes=48, index_interval_bytes=1)
    for number in range(20):
        append(log, timestamps=NOW + number)
    assert len(log.segments) > 1
    assert all(segment.time_index.size_bytes <= 48 for segment in log.segments)


def test_offsets_of_a_segment_fit_32_bits(log: Log) -> None:
    append_as_is(log, batch_of(b"low"), NOW)
    far = batch_of(b"high", base_offset=1 << 31, last_offset=1 << 31)
    far[0:8] = (1 << 31).to_bytes(8)
    append_as_is(log, far, NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    log.advance_high_watermark(log.log_end_offset)
    assert values_of(log) == [b"low", b"high"]


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=100)
    with pytest.raises(RecordListTooLarge):
        append(log, b"x" * 100)
    assert log.log_end_offset == 0


def test_a_new_segment_ms_counts_for_the_active_segment(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_ms=1000)
    append(log, timestamps=NOW)
    log.reconfigure(LogConfig(segment_ms=10))
    append(log, timestamps=NOW + 11)
    assert len(log.segments) == 2


def test_rolling_an_empty_segment_changes_nothing(log: Log) -> None:
    log.roll()
    append(log)
    log.roll()
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 1]
