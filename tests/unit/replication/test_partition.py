"""Roles of a replica, and the one place that commits what a leader appends."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import KafkaStorageError, NotEnoughReplicas, NotLeaderOrFollower
from headrace.metadata.image import PartitionImage, TopicImage
from headrace.replication.delayed import Awaited
from headrace.replication.metrics import TopicMetrics
from headrace.replication.partition import Partition, Transition
from headrace.replication.partitions import Partitions
from tests.builders.logs import NOW, TOPIC_ID, batch_of, new_log

NODE, OTHER = 1, 2


class Changes(list[Awaited]):
    """Partitions, and queues of producers, whose waiters were woken."""


def image(
    *replicas: int, leader: int = NODE, epoch: int = 0, partition_epoch: int = 0
) -> PartitionImage:
    return PartitionImage(
        replicas=replicas or (NODE,),
        isr=replicas or (NODE,),
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
    )


def hosted(
    root: Path, first: PartitionImage, changes: Changes | None = None, **config: Any
) -> Partition:
    partitions = Partitions((Changes() if changes is None else changes).append)
    topic = TopicImage("orders", TOPIC_ID, (first,))
    partition = partitions.host(topic, NODE, TopicMetrics(), 0).topic.hosted(0)
    partition.attach(new_log(root, **config), 0)
    return partition


def append(partition: Partition, value: bytes = b"v") -> int:
    return partition.append(batch_of(value), NOW).last_offset


def high_watermark(partition: Partition) -> int:
    return partition.online_log().high_watermark


def test_a_sole_replica_commits_its_appends(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image())
    append(partition)
    assert high_watermark(partition) == 1


def test_records_with_followers_are_committed_by_their_acknowledgement(tmp_path: Path) -> None:
    changes = Changes()
    partition = hosted(tmp_path, image(NODE, OTHER), changes)
    committed: list[int] = []
    partition.on_committed = lambda: committed.append(high_watermark(partition))
    partition.waiters[None] = None  # type: ignore[index]  # Only its presence counts here.
    append(partition)
    append(partition)
    assert (high_watermark(partition), committed) == (0, [])
    changes.clear()
    partition.acknowledge(OTHER, 1, NOW)
    assert committed == [1]
    assert changes == [partition]
    partition.acknowledge(OTHER, 2, NOW)
    assert (committed, partition.is_committed(2)) == ([1, 2], True)


def test_below_the_min_isr_an_append_is_not_committed(tmp_path: Path) -> None:
    first = PartitionImage(replicas=(NODE, OTHER), isr=(NODE,), leader=NODE)
    partition = hosted(tmp_path, first, min_insync_replicas=2)
    append(partition)
    assert high_watermark(partition) == 0


def test_the_min_isr_does_not_hold_back_a_sole_replica(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(), min_insync_replicas=2)
    append(partition)
    assert high_watermark(partition) == 1


def test_an_isr_that_shrinks_commits_records_that_waited_for_the_member(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    append(partition)
    alone = PartitionImage(replicas=(NODE, OTHER), isr=(NODE,), leader=NODE, partition_epoch=1)
    assert partition.follow(alone, 0) is Transition.STAYS
    assert high_watermark(partition) == 1


def test_a_leader_becomes_follower_and_leader_again(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    assert partition.follow(image(NODE, OTHER, leader=OTHER, epoch=1), 0) is (
        Transition.BECOMES_FOLLOWER
    )
    with pytest.raises(NotLeaderOrFollower) as refused:
        append(partition)
    assert refused.value.current_leader is not None
    assert partition.follow(image(NODE, OTHER, leader=OTHER, epoch=2), 0) is (
        Transition.BECOMES_FOLLOWER
    )
    assert partition.follow(image(NODE, OTHER, epoch=3), 0) is Transition.BECOMES_LEADER
    assert append(partition) == 0


def test_a_follower_with_another_isr_does_not_change(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER, leader=OTHER))
    changed = image(NODE, OTHER, leader=OTHER, partition_epoch=1)
    assert partition.follow(changed, 0) is Transition.STAYS


def test_progress_of_followers_does_not_outlive_an_epoch(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    append(partition)
    partition.acknowledge(OTHER, 1, NOW)
    assert partition.follow(image(NODE, OTHER, epoch=1), 0) is Transition.LEADS_NEW_EPOCH
    append(partition)
    assert high_watermark(partition) == 1


def test_a_replica_that_becomes_the_only_one_commits_all_that_it_has(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    append(partition)
    partition.follow(image(partition_epoch=1), 0)
    assert (partition.in_sync, high_watermark(partition)) == (None, 1)


def test_a_coordinators_records_need_the_min_isr(tmp_path: Path) -> None:
    first = PartitionImage(replicas=(NODE, OTHER), isr=(NODE,), leader=NODE)
    partition = hosted(tmp_path, first, min_insync_replicas=2)
    with pytest.raises(NotEnoughReplicas):
        partition.append_built(bytearray(batch_of(b"v")), 1, NOW)
    with pytest.raises(NotEnoughReplicas):
        partition.append_marker(bytearray(batch_of(b"v")), 0, NOW)
    assert append(partition) == 0  # A producer with acks=1 does not care.


def test_the_end_of_a_new_leader_is_known_once_its_followers_have_fetched(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    append(partition)
    partition.follow(image(NODE, OTHER, epoch=1), 0)
    assert not partition.is_end_known
    partition.acknowledge(OTHER, 1, NOW)
    assert partition.is_end_known


class Place:
    """A follower's place, and the events that it noted."""

    def __init__(self, partition: Partition) -> None:
        self.noted: list[str] = []
        partition.readers[self] = None

    def on_append(self) -> None:
        self.noted.append("append")

    def on_commit(self) -> None:
        self.noted.append("commit")

    def on_change(self) -> None:
        self.noted.append("change")


def test_readers_note_appends_and_commits(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    place = Place(partition)
    append(partition)
    partition.acknowledge(OTHER, 1, NOW)
    partition.acknowledge(OTHER, 1, NOW)
    assert place.noted == ["append", "commit"]


def test_readers_note_changes_of_role_replicas_and_start(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    append(partition)
    partition.acknowledge(OTHER, 1, NOW)
    place = Place(partition)
    partition.delete_records_before(1)
    partition.note_start()
    partition.follow(image(NODE, OTHER, epoch=1, partition_epoch=1), 0)
    partition.follow(image(NODE, OTHER, 3, epoch=1, partition_epoch=2), 0)
    partition.follow(image(NODE, OTHER, 3, epoch=1, partition_epoch=3), 0)
    partition.follow(image(NODE, OTHER, 3, leader=OTHER, epoch=2), 0)
    partition.leave()
    assert place.noted == ["change"] * 5


def test_consumers_are_not_woken_by_records_that_are_not_committed(tmp_path: Path) -> None:
    changes = Changes()
    partition = hosted(tmp_path, image(NODE, OTHER), changes)
    partition.waiters[None] = None  # type: ignore[index]  # Only its presence counts here.
    append(partition)
    assert changes == []


def test_the_epoch_is_entered_at_the_end_of_the_log(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER))
    append(partition)
    partition.follow(image(NODE, OTHER, epoch=4), 0)
    partition.enter_epoch()
    entry = partition.online_log().leader_epochs.entries[-1]
    assert (entry.epoch, entry.start_offset) == (4, 1)


def test_a_failed_disk_is_reported_rather_than_a_leader(tmp_path: Path) -> None:
    partition = hosted(tmp_path, image(NODE, OTHER, leader=OTHER))
    partition.online_log().fail(OSError(5, "Input/output error"))
    with pytest.raises(KafkaStorageError):
        partition.check_led()
