"""No crash takes an acknowledged record, tears a batch, or brings a damaged one to a reader.

A crash here is the death of the process: what was written stays, what was not is missing. Lost and
mangled bytes, as a power cut leaves them, are made by cutting and damaging files.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.batches import headers
from headrace.storage.appending import append_as_leader
from headrace.storage.config import LogConfig
from headrace.storage.directories import LogDirectories
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition
from tests.builders.failing_disk import killed_after
from tests.builders.logs import (
    NOW,
    TOPIC_ID,
    append,
    batch_of,
    fresh_directories,
    new_log,
    reopened,
    values_of,
)

PARTITIONS = (TopicPartition("a", 0), TopicPartition("b", 1))
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=200, file_delete_delay_ms=0)
DIRECTORY_ID = bytes(15) + b"\xff"


@pytest.fixture(scope="module")
def directories() -> Iterator[Iterator[Path]]:
    with fresh_directories() as paths:
        yield paths


class Life:
    """One run of a node after another on the same directory, each of which may be cut short."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.acknowledged: dict[TopicPartition, list[bytes]] = {name: [] for name in PARTITIONS}
        self.sent = 0

    def run(self, appends: int) -> None:
        """Start, write in turn to two partitions, do the housekeeping between, stop."""
        node = self.start()
        for number in range(appends):
            name = PARTITIONS[number % 2]
            value = b"%d" % self.sent * 5
            self.sent += 1
            log = node.log_of(name, TOPIC_ID, CONFIG)
            append_as_leader(log, batch_of(value), 0, NOW + number)
            log.advance_high_watermark(log.log_end_offset)
            self.acknowledged[name].append(value)
            if number % 5 == 4:
                self.keep_house(node)
        node.close(number)

    def start(self) -> LogDirectories:
        node = LogDirectories.open([self.path], {self.path: DIRECTORY_ID})
        for name in PARTITIONS:
            node.log_of(name, TOPIC_ID, CONFIG)
        return node

    def keep_house(self, node: LogDirectories) -> None:
        for log in node:
            plan = log.plan_flush()
            plan.run()
            log.flushed(plan, NOW)
        for checkpoint in (*node.plan_high_watermarks(), *node.plan_checkpoints()):
            checkpoint.run()

    def check(self) -> None:
        """Everything acknowledged is there, in order, once; at most the last one is extra."""
        node = self.start()
        for log in node:
            log.advance_high_watermark(log.log_end_offset)
            expected = self.acknowledged[log.topic_partition]
            found = values_of(log)
            assert found[: len(expected)] == expected
            assert len(found) <= len(expected) + 1
            self.acknowledged[log.topic_partition] = [value for value in found if value]
        node.close(0)


@given(lives=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 120)), min_size=1, max_size=4))
def test_acknowledged_records_survive_any_death(
    lives: list[tuple[int, int]], directories: Iterator[Path]
) -> None:
    """LOG-11: a node dies between two changes to its disk, or in the middle of a write."""
    life = Life(next(directories))
    for changes, torn_bytes in lives:
        with killed_after(changes, torn_bytes=torn_bytes):
            life.run(appends=30)
        life.check()


SOME_BATCHES = st.lists(st.integers(1, 200), min_size=1, max_size=12)


def filled_log(path: Path, sizes: list[int]) -> Log:
    log = new_log(path, segment_bytes=600, index_interval_bytes=150)
    for size in sizes:
        append(log, bytes([size]) * size)
    return log


def places(log: Log) -> list[tuple[Path, int, int]]:
    """The file, start and end of every batch."""
    found = []
    for segment in log.segments:
        path = Path(segment.path(".log"))
        for position, header in headers(path.read_bytes()):
            found.append((path, position, position + header.size))
    return found


@given(sizes=SOME_BATCHES, data=st.data())
def test_a_log_that_lost_its_end_keeps_every_whole_batch_before(
    sizes: list[int], data: st.DataObject, directories: Iterator[Path]
) -> None:
    log = filled_log(next(directories), sizes)
    batches = places(log)
    at = data.draw(st.integers(0, len(batches) - 1))
    path, start, end = batches[at]
    log.release()
    with path.open("r+b") as file:
        file.truncate(data.draw(st.integers(start, end - 1)))
    for later in path.parent.glob("*.log"):
        if later.name > path.name:
            later.unlink()

    log = reopened(log, recovery_point=0)
    log.advance_high_watermark(log.log_end_offset)

    assert values_of(log) == [bytes([size]) * size for size in sizes[:at]]
    append(log, b"next")
    assert values_of(log)[-1] == b"next"
    log.release()


@given(sizes=SOME_BATCHES, data=st.data())
def test_a_damaged_batch_is_never_served(
    sizes: list[int], data: st.DataObject, directories: Iterator[Path]
) -> None:
    """The base offset and the leader epoch are not under the checksum, but offsets must ascend."""
    log = filled_log(next(directories), sizes)
    batches = places(log)
    at = data.draw(st.integers(0, len(batches) - 1))
    path, start, end = batches[at]
    log.release()
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(start + 16, end - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)

    log = reopened(log, recovery_point=0)
    log.advance_high_watermark(log.log_end_offset)

    assert values_of(log) == [bytes([size]) * size for size in sizes[:at]]
    log.release()


@given(sizes=SOME_BATCHES, junk=st.binary(min_size=1, max_size=200))
def test_bytes_behind_the_last_batch_are_cut_off(
    sizes: list[int], junk: bytes, directories: Iterator[Path]
) -> None:
    log = filled_log(next(directories), sizes)
    path = Path(log.segments[-1].path(".log"))
    size = path.stat().st_size
    log.release()
    with path.open("ab") as file:
        file.write(junk)

    log = reopened(log, recovery_point=0)

    assert log.log_end_offset == len(sizes)
    assert path.stat().st_size == size
    log.release()


@given(sizes=SOME_BATCHES, data=st.data())
def test_any_damage_to_an_index_is_repaired(
    sizes: list[int], data: st.DataObject, directories: Iterator[Path]
) -> None:
    """Indexes, snapshots and epochs can be rebuilt, so their content never decides alone."""
    log = filled_log(next(directories), sizes)
    log.close()
    extension = data.draw(st.sampled_from((".index", ".timeindex", ".snapshot", "checkpoint")))
    for path in Path(log.directory).glob(f"*{extension}"):
        path.write_bytes(data.draw(st.binary(max_size=40)))

    log = reopened(log, recovery_point=0)
    log.advance_high_watermark(log.log_end_offset)

    assert values_of(log) == [bytes([size]) * size for size in sizes]
    assert log.leader_epochs.latest_epoch == 0
    log.close()
    shutil.rmtree(log.directory)
