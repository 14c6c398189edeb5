"""From the names on the wire to the partitions behind them."""

import pytest

from headrace.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import PartitionImage, TopicImage
from headrace.replication.metrics import TopicMetrics
from headrace.replication.partition import Partition
from headrace.replication.partitions import Partitions

NODE = 1
ID, OTHER_ID = bytes(range(16)), bytes(range(16, 32))


def image(replica: int = NODE, leader_epoch: int = 0) -> PartitionImage:
    return PartitionImage(
        replicas=(replica,), isr=(replica,), leader=replica, leader_epoch=leader_epoch
    )


def topic(*partitions: PartitionImage, topic_id: bytes = ID) -> TopicImage:
    return TopicImage("orders", topic_id, partitions)


def hosting(*topics: TopicImage) -> Partitions:
    partitions = Partitions(lambda partition: None)
    for one in topics:
        partitions.host(one, NODE, TopicMetrics(), 0)
    return partitions


def test_a_partition_is_found_by_name_and_by_id() -> None:
    partitions = hosting(topic(image(), image()))
    assert partitions.led("orders", 1) is partitions.by_id[ID].led(1)
    assert len(partitions) == 2


@pytest.mark.parametrize("index", [-1, 2])
def test_a_partition_beyond_the_topic_is_unknown(index: int) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="partitions 0 to 1"):
        hosting(topic(image(), image())).led("orders", index)


def test_an_unknown_topic_is_refused() -> None:
    with pytest.raises(UnknownTopicOrPartition):
        hosting().led("orders", 0)


def test_a_partition_of_another_broker_is_not_served() -> None:
    partitions = hosting(topic(image(), image(replica=2)))
    with pytest.raises(NotLeaderOrFollower):
        partitions.led("orders", 1)
    assert len(partitions) == 1


def test_a_changed_topic_keeps_its_partitions_and_gains_new_ones() -> None:
    partitions = hosting(topic(image()))
    first = partitions.led("orders", 0)
    partitions.host(topic(image(leader_epoch=4), image()), NODE, TopicMetrics(), 0)
    assert partitions.led("orders", 0) is first
    assert first.leader_epoch == 4
    assert len(partitions) == 2


def test_a_topic_that_reuses_a_name_survives_the_deletion_of_the_old_one() -> None:
    partitions = hosting(topic(image()), topic(image(), topic_id=OTHER_ID))
    partitions.drop(ID)
    assert partitions.led("orders", 0).topic_id == OTHER_ID
    partitions.drop(OTHER_ID)
    assert len(partitions) == 0


def test_a_client_with_another_epoch_gets_the_error_of_its_side() -> None:
    partition = hosting(topic(image(leader_epoch=5))).led("orders", 0)
    partition.check_leader_epoch(5)
    partition.check_leader_epoch(-1)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_leader_epoch(4)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_leader_epoch(6)


def test_a_partition_without_its_disk_raises_a_storage_error() -> None:
    partition = hosting(topic(image())).led("orders", 0)
    with pytest.raises(KafkaStorageError, match="offline"):
        partition.online_log()


def test_a_log_is_made_when_it_is_first_wanted() -> None:
    partition = hosting(topic(image())).led("orders", 0)
    made: list[Partition] = []
    partition.make_log = made.append
    with pytest.raises(KafkaStorageError):
        partition.online_log()
    assert made == [partition]


def test_a_log_that_could_not_be_made_is_tried_again() -> None:
    partition = hosting(topic(image())).led("orders", 0)
    attempts: list[Partition] = []

    def make(wanted: Partition) -> None:
        attempts.append(wanted)
        raise KafkaStorageError("no space left on device")

    partition.make_log = make
    for _ in range(2):
        with pytest.raises(KafkaStorageError, match="no space"):
            partition.online_log()
    assert len(attempts) == 2
