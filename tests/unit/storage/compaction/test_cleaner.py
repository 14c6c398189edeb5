"""Cleaning whole logs: what is chosen, what is left, what is swapped."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.protocol.batches import Record, build_batch, read_header
from headrace.storage.appending import append_as_leader
from headrace.storage.compaction.cleaner import Cleaner, find_dirt
from headrace.storage.compaction.cleaning import (
    CleanedGroup,
    Cleaning,
    SourceSegment,
    group_segments,
)
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.producer_state import Origin
from headrace.storage.recovery import load_log
from headrace.storage.topic_partition import TopicPartition
from tests.builders.compacted_logs import (
    COMPACTED,
    NOW,
    PARTITION,
    Settings,
    append,
    at_once,
    base_offsets,
    batches_of,
    clean,
    cleaner,
    new_log,
    pairs_in,
    record,
    records_in,
    run,
    write,
)

HOUR = 3_600_000


def with_config(**options: Any) -> LogConfig:
    return msgspec.structs.replace(COMPACTED, **options)


def log_of(directory: Path, *segments: str, config: LogConfig = COMPACTED) -> Log:
    """A log of segments in which each word `k=v` is a batch; `k=` is a tombstone."""
    log = new_log(directory, config)
    for segment in segments:
        for word in segment.split():
            key, _, value = word.partition("=")
            write(log, [(key, value or None)])
        log.roll()
    return log


def words_in(log: Log) -> list[str]:
    return [f"{offset}:{key}={value or ''}" for offset, key, value in pairs_in(log)]


def test_compaction_keeps_the_example_of_the_lecture(tmp_path: Path) -> None:
    """RET-3."""
    log = new_log(tmp_path)
    for offset, key, value in [
        (13, "K1", "V5"),
        (17, "K5", "V2"),
        (19, "K2", "V7"),
        (20, "K2", "V1"),
        (21, "K7", "V8"),
        (22, "K1", "V4"),
        (23, "K1", "V15"),
    ]:
        append(log, record(offset, key, value))
    log.roll()
    assert clean(log)
    assert words_in(log) == ["17:K5=V2", "20:K2=V1", "21:K7=V8", "23:K1=V15"]


def test_the_last_value_of_each_key_is_left_in_order(tmp_path: Path) -> None:
    """RET-4."""
    log = log_of(tmp_path, "a=1 b=1 a=2", "c=1 b=2", "a=3 d=1")
    clean(log)
    assert words_in(log) == ["3:c=1", "4:b=2", "5:a=3", "6:d=1"]


def test_a_fetch_at_a_removed_offset_gives_the_next_record(tmp_path: Path) -> None:
    """RET-5."""
    log = log_of(tmp_path, "a=1 b=1 a=2", "b=2 c=1", "d=1")
    clean(log)
    first_offsets = [
        read_header(log.read(offset, 1, log.log_end_offset).read()).base_offset
        for offset in range(6)
    ]
    assert first_offsets == [2, 2, 2, 3, 4, 5]


def test_the_active_segment_is_never_cleaned(tmp_path: Path) -> None:
    """RET-6."""
    log = log_of(tmp_path, "a=1 a=2")
    write(log, [("a", "3")])
    write(log, [("a", "4")])
    clean(log)
    assert words_in(log) == ["1:a=2", "2:a=3", "3:a=4"]


def test_uncommitted_records_are_not_cleaned(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a=1 a=2", "a=3 a=4")
    log.high_watermark = 3
    clean(log)
    assert words_in(log) == ["1:a=2", "2:a=3", "3:a=4"]


def test_young_records_are_protected(tmp_path: Path) -> None:
    """RET-8."""
    log = new_log(tmp_path, with_config(min_compaction_lag_ms=HOUR))
    write(log, [("a", "1"), ("a", "2")], NOW - 2 * HOUR)
    log.roll()
    write(log, [("a", "3"), ("a", "4")], NOW - HOUR + 1)
    log.roll()
    clean(log)
    assert words_in(log) == ["1:a=2", "2:a=3", "3:a=4"]


def test_tombstones_delete_and_go_after_a_while(tmp_path: Path) -> None:
    """RET-7: the key goes with the first cleaning, the tombstone with one a day later."""
    day = 24 * HOUR
    log = log_of(tmp_path, "a=1 b=1", "a= c=1")
    clean(log)
    assert words_in(log) == ["1:b=1", "2:a=", "3:c=1"]
    clean_again(log, NOW + day - 1)
    assert "2:a=" in words_in(log)
    clean_again(log, NOW + day)
    assert "2:a=" not in words_in(log)


def clean_again(log: Log, now_ms: int) -> None:
    """Write something so that there is a dirty part, and clean the whole log."""
    write(log, [(f"at {now_ms}", "x")])
    log.roll()
    assert clean(log, now_ms)


def test_cleaning_a_second_time_finds_nothing_to_do(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a=1 a=2", "b=1")
    one = cleaner()
    assert run(one.run([log], NOW))
    assert not run(one.run([log], NOW))
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\ntables 0 3\n"


def test_the_checkpoint_survives_a_restart(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a=1 a=2", "b=1")
    clean(log)
    assert not clean(log)


def test_cleaning_continues_at_its_last_end(tmp_path: Path) -> None:
    """A key of the clean part goes when the dirty part has a newer record of it."""
    log = log_of(tmp_path, "a=1 b=1", "c=1")
    clean(log)
    write(log, [("b", "2")])
    log.roll()
    clean(log)
    assert words_in(log) == ["0:a=1", "2:c=1", "3:b=2"]


def test_a_small_map_takes_more_rounds_to_the_same_end(tmp_path: Path) -> None:
    log = log_of(tmp_path, *(" ".join(f"k{i}=v{j}" for i in range(20)) for j in range(4)))
    one = Cleaner(Settings(log_cleaner_dedupe_buffer_size=5 * 32), at_once)
    rounds = 0
    while run(one.run([log], NOW)):
        rounds += 1
    assert rounds > 5
    assert words_in(log) == [f"{60 + i}:k{i}=v3" for i in range(20)]


def test_small_segments_are_joined_up_to_the_size_of_one(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a=1", "b=1", "c=1", "d=1", config=with_config(segment_bytes=150))
    clean(log)
    assert base_offsets(log) == [0, 2, 4]
    assert words_in(log) == ["0:a=1", "1:b=1", "2:c=1", "3:d=1"]


def test_after_cleaning_the_log_opens_as_it_was_left(tmp_path: Path) -> None:
    """RET-11: a restart finds the compacted log and nothing else."""
    log = log_of(tmp_path, "a=1 b=1 a=2", "b=2 c=1 a=3")
    clean(log)
    before = batches_of(log)
    log.close()
    again = load_log(PARTITION, log.directory, COMPACTED, clean=False)
    assert batches_of(again) == before
    assert again.log_end_offset == 6
    assert not [name for name in os.listdir(log.directory) if not is_plain(name)]


def is_plain(name: str) -> bool:
    endings = (".log", ".index", ".timeindex", ".snapshot", "checkpoint")
    return name.endswith(endings)


def test_at_most_one_segment_exists_twice(tmp_path: Path) -> None:
    """RET-9: old segments are gone, but for the delay, before the next ones are written."""
    log = log_of(tmp_path, *["a=1 a=2 b=1"] * 5, config=with_config(segment_bytes=250))
    twice = []

    class Watched(Cleaning):
        def next(self) -> CleanedGroup | None:
            group = super().next()
            names = os.listdir(log.directory)
            twice.append(len([name for name in names if name.endswith(".log.cleaned")]))
            return group

    one = Cleaner(Settings(), at_once, begin=Watched)
    run(one.run([log], NOW))
    assert len(twice) > 2
    assert max(twice) == 1


def test_records_can_be_read_while_they_are_cleaned(tmp_path: Path) -> None:
    """RET-9: a reader that got its slice before the swap gets the old bytes to the end."""
    log = log_of(tmp_path, "a=1 a=2 a=3", "b=1")
    before = log.read(0, 1 << 20, log.log_end_offset)
    clean(log)
    assert len(before.read()) == before.size
    assert read_header(log.read(0, 1 << 20, log.log_end_offset).read()).base_offset == 2


def test_the_dirtiest_log_is_cleaned_first(tmp_path: Path) -> None:
    """RET-9."""
    logs = []
    for number, (clean_part, dirty_part) in enumerate([(3, 1), (1, 3), (2, 2)]):
        (tmp_path / str(number)).mkdir()
        log = Log.create(
            TopicPartition("tables", number), str(tmp_path / str(number) / "log"), COMPACTED
        )
        for at in range(clean_part + dirty_part):
            if at == clean_part:
                run(cleaner().run([log], NOW))
            write(log, [(f"k{at}", "v" * 100)])
            log.roll()
        logs.append(log)
    chosen = cleaner().choose(logs, NOW)
    assert chosen is not None
    assert chosen.log is logs[1]


def test_a_log_is_left_alone_until_it_is_dirty_enough(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a=1 b=1 c=1 d=1", config=with_config(min_cleanable_dirty_ratio=0.3))
    assert clean(log)
    write(log, [("a", "2")])
    log.roll()
    assert not clean(log)
    write(log, [("a", "3")])
    log.roll()
    assert clean(log)


def test_waiting_too_long_makes_a_log_due(tmp_path: Path) -> None:
    config = with_config(min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=HOUR)
    log = log_of(tmp_path, "a=1 b=1 c=1 d=1", config=config)
    assert clean(log)
    write(log, [("a", "2")])
    log.roll()
    assert not clean(log, NOW + HOUR)
    assert clean(log, NOW + HOUR + 1)


def test_only_compacted_topics_are_cleaned(tmp_path: Path) -> None:
    """RET-2."""
    log = log_of(tmp_path, "a=1 a=2", config=LogConfig(min_cleanable_dirty_ratio=0.0))
    assert not clean(log)
    log.reconfigure(with_config(cleanup_policy=frozenset(("compact", "delete"))))
    assert clean(log)


@pytest.mark.parametrize("checkpoint", [-1, 99])
def test_an_impossible_checkpoint_means_that_all_is_dirty(tmp_path: Path, checkpoint: int) -> None:
    log = log_of(tmp_path, "a=1 a=2", "b=1")
    found = find_dirt(log, checkpoint, NOW)
    assert found is not None
    assert found.first_dirty_offset == 0


def test_a_log_that_changed_meanwhile_is_not_swapped(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a=1 a=2", "b=1 b=2", "c=1", config=with_config(segment_bytes=150))

    class Interrupted(Cleaning):
        def next(self) -> CleanedGroup | None:
            group = super().next()
            if group is not None and group.base_offsets == (2,):
                log.delete_records_before(4)
            return group

    one = Cleaner(Settings(), at_once, begin=Interrupted)
    run(one.run([log], NOW))
    assert words_in(log) == ["4:c=1"]
    assert one.offsets.known(log) is None
    assert not [name for name in os.listdir(log.directory) if name.endswith(".cleaned")]


def test_a_damaged_log_is_skipped_and_others_are_cleaned(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    bad = log_of(tmp_path / "bad", "a=1 a=2")
    bad.topic_partition = TopicPartition("bad", 0)
    path = Path(bad.segments[0].path(".log"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    good = log_of(tmp_path, "a=1 a=2 a=3", "b=1")
    one = cleaner()
    while run(one.run([bad, good], NOW)):
        continue
    assert one.uncleanable == {TopicPartition("bad", 0)}
    assert one.metrics.uncleanable_partitions == 1
    assert path.read_bytes() == content
    assert words_in(good) == ["2:a=3", "3:b=1"]
    assert not [name for name in os.listdir(bad.directory) if name.endswith(".cleaned")]


def test_a_retry_is_recognised_after_its_batch_was_compacted_away(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    def produce(sequence: int, value: bytes) -> Any:
        batch = build_batch(
            [Record(0, NOW, b"k", value)], producer_id=5, producer_epoch=0, base_sequence=sequence
        )
        info = append_as_leader(log, memoryview(batch), 0, NOW)
        log.advance_high_watermark(log.log_end_offset)
        return info

    produce(0, b"one")
    write(log, [("k", "two")])
    log.roll()
    clean(log)
    log.close()
    os.unlink(tmp_path / "tables-0" / f"{2:020d}.snapshot")
    log = load_log(PARTITION, log.directory, COMPACTED, clean=False)
    again = produce(0, b"one")
    assert (again.duplicate, again.base_offset) == (True, 0)


def test_records_without_timestamps_do_not_become_younger(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    write(log, [("a", "1"), ("a", "2")], timestamp=-1)
    log.roll()
    path = log.segments[0].path(".log")
    os.utime(path, (1_000, 1_000))
    clean(log)
    assert os.stat(path).st_mtime == 1_000


def test_aborted_transactions_are_cleaned_and_their_index_follows(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    produce_in_transaction(log, "a", "aborted", commit=False)
    produce_in_transaction(log, "b", "committed", commit=True)
    log.roll()
    clean(log)
    assert [item.key for item in records_in(log) if item.value == b"aborted"] == []
    assert [item.value for item in records_in(log) if item.key == b"b"] == [b"committed"]
    assert [item.producer_id for item in log.aborted_transactions(0, 10)] == [1]
    log.producers.entries.clear()  # Its last batch, empty by now, need not stay for a retry.
    clean_again(log, NOW + HOUR)
    clean_again(log, NOW + 2 * HOUR)
    assert log.aborted_transactions(0, 10) == []


def produce_in_transaction(log: Log, key: str, value: str, *, commit: bool) -> None:
    producer_id = 2 if commit else 1
    identity: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": 0,
        "transactional": True,
    }
    data = build_batch([record(0, key, value)], base_sequence=0, **identity)
    append_as_leader(log, memoryview(data), 0, NOW, transaction_version=0)
    kind = b"\x00\x00\x00\x01" if commit else b"\x00\x00\x00\x00"
    end = Record(0, NOW, kind, b"\x00\x00\x00\x00\x00\x01")
    marker = build_batch([end], control=True, **identity)
    append_as_leader(log, memoryview(marker), 0, NOW, Origin.COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)


def test_segments_are_grouped_by_size_indexes_and_offsets() -> None:
    def grouped(*sizes: tuple[int, int, int, int], end_offset: int = 1 << 33) -> list[list[int]]:
        groups = group_segments(
            [(SourceSegment(base, size), index, times) for base, size, index, times in sizes],
            segment_bytes=100,
            segment_index_bytes=10,
            end_offset=end_offset,
        )
        return [[source.base_offset for source in group] for group in groups]

    assert grouped((0, 60, 1, 1), (5, 40, 1, 1), (7, 1, 1, 1), end_offset=9) == [[0, 5], [7]]
    assert grouped((0, 1, 6, 1), (5, 1, 5, 1), end_offset=9) == [[0], [5]]
    assert grouped((0, 1, 1, 6), (5, 1, 1, 5), end_offset=9) == [[0], [5]]
    assert grouped((0, 1, 1, 1), (5, 1, 1, 1), end_offset=(1 << 31) + 1) == [[0], [5]]
    assert grouped((0, 1, 1, 1), (5, 1, 1, 1), end_offset=1 << 31) == [[0, 5]]
    assert grouped((0, 1, 1, 1), (1 << 32, 0, 0, 0)) == [[0, 1 << 32]]
    assert grouped((0, 500, 50, 50), (5, 1, 1, 1), end_offset=9) == [[0], [5]]


def test_segments_due_for_compaction_are_closed_in_time(tmp_path: Path) -> None:
    """max.compaction.lag.ms counts for the active segment, which is never cleaned, by a roll."""
    log = new_log(tmp_path, with_config(max_compaction_lag_ms=HOUR))
    write(log, [("a", "1")], NOW - HOUR - 1)
    write(log, [("a", "2")], NOW)
    assert base_offsets(log) == [0, 1]


def test_a_log_that_could_not_be_cleaned_does_not_hold_up_the_others(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    bad = log_of(tmp_path / "bad", "a=1 a=2")
    bad.topic_partition = TopicPartition("bad", 0)
    good = log_of(tmp_path, "a=1 a=2", "b=1")
    os.rename(bad.segments[0].path(".log"), tmp_path / "elsewhere")
    one = cleaner()
    rounds = 0
    while run(one.run([bad, good], NOW)):
        rounds += 1
    assert rounds == 2
    assert words_in(good) == ["1:a=2", "2:b=1"]
    os.rename(tmp_path / "elsewhere", bad.segments[0].path(".log"))
    assert not run(one.run([bad, good], NOW))
    assert run(one.run([bad, good], NOW + HOUR))
    assert words_in(bad) == ["1:a=2"]


async def test_several_threads_clean_different_logs(tmp_path: Path) -> None:
    """RET-9: log.cleaner.threads logs are cleaned at a time, and none twice."""
    logs = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        logs.append(log_of(tmp_path / str(number), "a=1 a=2 a=3", "b=1"))
    gate = asyncio.Event()
    under_way: list[str] = []

    async def when_all_are_there(function: Any, *arguments: Any) -> Any:
        under_way.append(str(function))
        if len(under_way) == 2:
            gate.set()
        await gate.wait()
        return function(*arguments)

    one = Cleaner(Settings(log_cleaner_threads=2), when_all_are_there, begin=Cleaning)
    first, second = await asyncio.gather(one.run(logs, NOW), one.run(logs, NOW))
    assert first
    assert second
    assert one.metrics.runs == 2
    assert one.threads == 2
