"""Producers with acks=all are answered when the high watermark covers their records."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from headrace.errors import (
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from headrace.metadata.image import PartitionImage, TopicImage
from headrace.replication.delayed import WakeUps
from headrace.replication.metrics import TopicMetrics
from headrace.replication.partition import Partition
from headrace.replication.partitions import Partitions
from tests.builders.logs import NOW, TOPIC_ID, batch_of, new_log

NODE, SECOND, THIRD = 1, 2, 3
LONG_MS = 60_000
FIRST = PartitionImage(replicas=(NODE, SECOND, THIRD), isr=(NODE, SECOND), leader=NODE)


def led(root: Path, image: PartitionImage = FIRST, min_isr: int = 2) -> Partition:
    partitions = Partitions(WakeUps(asyncio.get_running_loop()).changed)
    topic = TopicImage("orders", TOPIC_ID, (image,))
    partition = partitions.host(topic, NODE, TopicMetrics(), 0).topic.hosted(0)
    partition.attach(new_log(root, min_insync_replicas=min_isr), 0)
    return partition


class Producers:
    """Requests that wait, and how they ended."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.ended: list[tuple[str, int]] = []

    def append(self, name: str, timeout_ms: int = LONG_MS) -> int:
        end_offset = self._partition.append(batch_of(b"v"), NOW).last_offset + 1
        self.wait(name, end_offset, timeout_ms)
        return end_offset

    def wait(self, name: str, end_offset: int, timeout_ms: int = LONG_MS) -> None:
        self._partition.when_committed(end_offset, timeout_ms, self.done(name))

    def done(self, name: str) -> Callable[[KafkaError | None], None]:
        return lambda error: self.ended.append((name, 0 if error is None else error.code))


async def turn() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def changed(**fields: object) -> PartitionImage:
    return msgspec.structs.replace(FIRST, **{"partition_epoch": 1, **fields})


async def test_producers_end_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    for name in "abc":
        producers.append(name)
    partition.acknowledge(SECOND, 2, NOW)
    assert producers.ended == []  # A turn of the loop may bring more acknowledgements.
    await turn()
    assert producers.ended == [("a", 0), ("b", 0)]
    partition.acknowledge(SECOND, 3, NOW)
    await turn()
    assert producers.ended[2:] == [("c", 0)]


async def test_a_duplicate_waits_for_the_batch_that_it_repeats(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    first = producers.append("first")
    producers.append("second")
    producers.wait("first again", first)
    partition.acknowledge(SECOND, first, NOW)
    await turn()
    assert producers.ended == [("first", 0), ("first again", 0)]


async def test_committed_records_are_not_waited_for(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    producers.append("a")
    partition.acknowledge(SECOND, 1, NOW)
    await turn()
    producers.wait("a again", 1)
    assert producers.ended == [("a", 0)]
    await turn()
    assert producers.ended == [("a", 0), ("a again", 0)]


async def test_a_producer_waits_for_its_time_at_most(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    producers.append("long")
    producers.append("short", timeout_ms=1)
    producers.append("shorter", timeout_ms=0)
    await asyncio.sleep(0.01)
    assert producers.ended == [
        ("shorter", RequestTimedOut.code),
        ("short", RequestTimedOut.code),
    ]
    partition.acknowledge(SECOND, 3, NOW)
    await turn()
    assert producers.ended[2:] == [("long", 0)]


async def test_an_isr_that_shrinks_below_the_minimum_is_reported(tmp_path: Path) -> None:
    """The records are committed by then, and stay."""
    partition = led(tmp_path)
    producers = Producers(partition)
    producers.append("a")
    partition.acknowledge(SECOND, 1, NOW)
    partition.follow(changed(isr=(NODE,)), NOW)
    await turn()
    assert producers.ended == [("a", NotEnoughReplicasAfterAppend.code)]


async def test_below_the_minimum_producers_wait(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    producers.append("a")
    partition.follow(changed(isr=(NODE,)), NOW)
    await turn()
    assert producers.ended == []
    with pytest.raises(NotEnoughReplicas):
        partition.check_min_isr()
    partition.follow(changed(isr=(NODE, THIRD), partition_epoch=2), NOW)
    partition.acknowledge(THIRD, 1, NOW)
    await turn()
    assert producers.ended == [("a", 0)]


async def test_a_lost_leadership_ends_the_wait_and_names_the_leader(tmp_path: Path) -> None:
    partition = led(tmp_path)
    errors: list[KafkaError | None] = []
    partition.when_committed(1, LONG_MS, errors.append)
    image = changed(leader=SECOND, leader_epoch=1)
    partition.topic.image = TopicImage("orders", TOPIC_ID, (image,))
    partition.follow(image, NOW)
    await turn()
    (error,) = errors
    assert isinstance(error, NotLeaderOrFollower)
    assert error.current_leader == (SECOND, 1)


async def test_a_new_epoch_of_the_same_leader_keeps_producers_waiting(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    producers.append("a")
    partition.follow(changed(leader_epoch=1), NOW)
    await turn()
    assert producers.ended == []
    partition.acknowledge(SECOND, 1, NOW)
    await turn()
    assert producers.ended == [("a", 0)]


async def test_a_failed_disk_ends_the_wait(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)
    producers.append("a")
    partition.online_log().fail(OSError(5, "Input/output error"))
    partition.notify()
    await turn()
    assert producers.ended == [("a", KafkaStorageError.code)]


async def test_a_producer_that_cannot_be_answered_affects_no_other(tmp_path: Path) -> None:
    partition = led(tmp_path)
    producers = Producers(partition)

    def fail(error: KafkaError | None) -> None:
        raise OSError("the client is gone")

    partition.when_committed(1, LONG_MS, fail)
    producers.append("a")
    partition.acknowledge(SECOND, 1, NOW)
    await turn()
    assert producers.ended == [("a", 0)]
