"""Leaders change their ISR, and brokers report the directories of their replicas."""

from typing import Any

import pytest

from headrace.broker.registration import directory_assignment
from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.requests import Context, decide
from headrace.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from headrace.metadata.image import LOST_DIRECTORY, NO_LEADER, MetadataImage, PartitionImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from headrace.protocol.schemas.records.metadata import BrokerRegistrationChangeRecord, ConfigRecord
from headrace.protocol.uuids import Uuid
from headrace.settings.broker import BrokerSettings
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    applied,
    directory_id,
    image_with,
    registered,
    replayed,
    topic_id,
    with_partition,
)

ORDERS = topic_id("orders")


def cluster(**state: Any) -> MetadataImage:
    """Partition 0 of two on the brokers 1 to 3, in a state; 1 leads."""
    image = image_with(topics={"orders": 2}, brokers=[1, 2, 3], replicas=[1, 2, 3])
    return with_partition(image, "orders", 0, **{"leader_epoch": 5, "partition_epoch": 7, **state})


def with_elr(**state: Any) -> MetadataImage:
    image = image_with(
        topics={"orders": 1}, brokers=[1, 2, 3], replicas=[1, 2, 3], levels=KAFKA_LEVELS
    )
    image = replayed(image, [ConfigRecord(2, "orders", "min.insync.replicas", "2")])
    return with_partition(image, "orders", 0, **state)


def wanted(isr: list[int], **fields: Any) -> AlterPartitionRequestPartitionData:
    fields = {"leader_epoch": 5, "partition_epoch": 7, **fields}
    members = [BrokerState(member, 100 + member) for member in isr]
    return AlterPartitionRequestPartitionData(new_isr_with_epochs=members, **fields)


def request(
    *partitions: AlterPartitionRequestPartitionData, topic: Uuid = ORDERS, sender: int = 1
) -> AlterPartitionRequest:
    topics = [AlterPartitionRequestTopicData(topic, list(partitions))]
    return AlterPartitionRequest(sender, 100 + sender, topics)


def decided(image: MetadataImage, asked: Message, version: int = -1) -> Decision[Any]:
    settings = BrokerSettings()
    context = Context(
        node_id=1,
        settings=settings,
        defaults=ClusterDefaults.of(settings),
        version=asked.VERSIONS[version],
        next_offset=77,
        kraft_version=1,
    )
    return decide(image, asked, context)


def answers(decision: Decision[Any]) -> list[AlterPartitionResponsePartitionData]:
    return [one for topic in decision.reply.topics for one in topic.partitions]


def altered(image: MetadataImage, decision: Decision[Any]) -> PartitionImage:
    return applied(image, decision).topics["orders"].partitions[0]


def test_a_leader_shrinks_and_expands_its_isr() -> None:
    image = cluster()
    decision = decided(image, request(wanted([1, 3])))
    partition = altered(image, decision)
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1, 3), 5, 8)
    (answer,) = answers(decision)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (0, 1, 5)
    assert (answer.isr, answer.partition_epoch) == ([1, 3], 8)
    image = applied(image, decision)
    partition = altered(image, decided(image, request(wanted([1, 3, 2], partition_epoch=8))))
    assert partition.isr == (1, 3, 2)


def test_an_isr_that_does_not_change_is_answered_without_a_record() -> None:
    decision = decided(cluster(), request(wanted([1, 2, 3])))
    assert list(decision.records) == []
    assert answers(decision)[0].partition_epoch == 7


def test_version_2_has_no_broker_epochs() -> None:
    asked = request(
        AlterPartitionRequestPartitionData(new_isr=[1, 2], leader_epoch=5, partition_epoch=7)
    )
    image = cluster()
    assert altered(image, decided(image, asked, version=0)).isr == (1, 2)


REFUSED: list[tuple[AlterPartitionRequestPartitionData, type[KafkaError]]] = [
    (wanted([1, 2], leader_epoch=6), NotController),
    (wanted([1, 2], partition_epoch=8), NotController),
    (wanted([1, 2], leader_epoch=4), FencedLeaderEpoch),
    (wanted([1, 2], partition_epoch=6), InvalidUpdateVersion),
    (wanted([1, 4]), InvalidRequest),
    (wanted([1, 2, 2]), InvalidRequest),
    (wanted([2, 3]), InvalidRequest),
    (wanted([]), InvalidRequest),
    (wanted([1, 2], leader_recovery_state=2), InvalidRequest),
    (wanted([1, 2], leader_recovery_state=1), InvalidRequest),
    (wanted([1], leader_recovery_state=1), InvalidRequest),
    (wanted([1], partition_index=2), UnknownTopicOrPartition),
    (wanted([1], partition_index=-1), UnknownTopicOrPartition),
]


@pytest.mark.parametrize(("partition", "error"), REFUSED)
def test_an_invalid_change_of_one_partition_is_rejected(
    partition: AlterPartitionRequestPartitionData, error: type[KafkaError]
) -> None:
    decision = decided(cluster(), request(partition))
    assert [one.error_code for one in answers(decision)] == [error.code]
    assert list(decision.records) == []


def test_only_the_leader_changes_the_isr() -> None:
    decision = decided(cluster(), request(wanted([1, 2]), sender=2))
    assert answers(decision)[0].error_code == InvalidRequest.code


def test_a_topic_that_is_gone_is_unknown() -> None:
    decision = decided(cluster(), request(wanted([1]), topic=b"?" * 16))
    assert answers(decision)[0].error_code == UnknownTopicId.code


def test_a_request_of_an_earlier_incarnation_is_rejected() -> None:
    asked = request(wanted([1, 2]))
    asked.broker_epoch = 7
    with pytest.raises(StaleBrokerEpoch):
        decided(cluster(), asked)


@pytest.mark.parametrize(
    "change",
    [
        BrokerRegistrationChangeRecord(2, 102, fenced=1),
        BrokerRegistrationChangeRecord(2, 102, in_controlled_shutdown=1),
        registered(2, broker_epoch=500),
    ],
)
def test_a_replica_that_is_away_or_has_restarted_is_not_eligible(change: Message) -> None:
    image = replayed(cluster(isr=[1]), [change])
    decision = decided(image, request(wanted([1, 2])))
    assert answers(decision)[0].error_code == IneligibleReplica.code


def test_an_unknown_broker_epoch_is_not_compared() -> None:
    image = replayed(cluster(isr=[1]), [registered(2, broker_epoch=500)])
    asked = wanted([1])
    asked.new_isr_with_epochs.append(BrokerState(2, -1))
    assert altered(image, decided(image, request(asked))).isr == (1, 2)


def test_each_partition_succeeds_or_fails_alone() -> None:
    asked = request(
        wanted([1, 2]),
        wanted([1, 2], partition_index=1),
        wanted([1, 3]),
        wanted([1, 2], partition_index=9),
    )
    image = cluster()
    decision = decided(image, asked)
    codes = [one.error_code for one in answers(decision)]
    assert codes == [
        0,
        NotController.code,
        InvalidUpdateVersion.code,
        UnknownTopicOrPartition.code,
    ]
    assert altered(image, decision).isr == (1, 2)


def test_a_leader_reports_that_it_has_recovered() -> None:
    image = cluster(isr=[1], leader_recovery_state=1)
    kept = wanted([1], leader_recovery_state=1)
    assert list(decided(image, request(kept)).records) == []
    partition = altered(image, decided(image, request(wanted([1, 2]))))
    assert (partition.leader_recovery_state, partition.isr) == (0, (1, 2))


# Eligible leaders.


def test_a_small_isr_makes_its_former_members_eligible() -> None:
    image = with_elr(isr=[1, 2])
    decision = decided(image, request(wanted([1], leader_epoch=0, partition_epoch=0)))
    partition = altered(image, decision)
    assert (partition.isr, partition.elr) == ((1,), (2,))


def test_a_large_enough_isr_needs_no_eligible_leaders() -> None:
    image = with_elr(isr=[1], elr=[2])
    decision = decided(image, request(wanted([1, 3], leader_epoch=0, partition_epoch=0)))
    partition = altered(image, decision)
    assert (partition.isr, partition.elr) == ((1, 3), ())


# Reassignments.


def moving(**state: Any) -> MetadataImage:
    """Partition 0 moves from broker 1, its leader, to broker 3."""
    replicas = [2, 3, 1]
    state = {"isr": [1, 2], "directories": [directory_id(one) for one in replicas], **state}
    return cluster(replicas=replicas, adding=[3], removing=[1], **state)


def test_a_reassignment_ends_when_all_its_replicas_are_in_sync() -> None:
    image = moving()
    decision = decided(image, request(wanted([1, 2, 3])))
    assert answers(decision)[0].error_code == NewLeaderElected.code
    partition = altered(image, decision)
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 3), (2, 3), 2)
    assert (partition.adding, partition.removing) == ((), ())
    assert partition.directories == (directory_id(2), directory_id(3))
    assert partition.leader_epoch == 6


def test_a_reassignment_that_keeps_its_leader_begins_a_new_term() -> None:
    image = moving(leader=2)
    decision = decided(image, request(wanted([1, 2, 3]), sender=2))
    (answer,) = answers(decision)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (0, 2, 6)
    assert altered(image, decision).replicas == (2, 3)


def test_a_reassignment_goes_on_while_a_new_replica_lags() -> None:
    image = moving(isr=[1])
    decision = decided(image, request(wanted([1, 2])))
    partition = altered(image, decision)
    assert (partition.replicas, partition.adding, partition.removing) == ((2, 3, 1), (3,), (1,))


# Size.


def test_the_changes_of_thousands_of_partitions_are_one_request() -> None:
    count = 15_000
    image = image_with(topics={"orders": count}, brokers=[1, 2, 3], replicas=[1, 2, 3])
    asked = request(
        *(
            wanted([1, 2], partition_index=index, leader_epoch=0, partition_epoch=0)
            for index in range(count)
        )
    )
    decision = decided(image, asked)
    assert len(decision.records) == count
    assert {one.error_code for one in answers(decision)} == {0}


# Log directories.


def test_replicas_are_assigned_to_directories() -> None:
    image = replayed(cluster(), [registered(1, log_dirs=[directory_id(1), directory_id(7)])])
    assigned = {(ORDERS, 0): directory_id(7), (ORDERS, 1): directory_id(7)}
    decision = decided(image, directory_assignment(1, 101, assigned))
    (directory,) = decision.reply.directories
    assert directory.id == directory_id(7)
    assert [(one.partition_index, one.error_code) for one in directory.topics[0].partitions] == [
        (0, 0),
        (1, 0),
    ]
    image = applied(image, decision)
    for partition in image.topics["orders"].partitions:
        assert partition.directory_of(1) == directory_id(7)
        assert partition.leader == 1
    assert list(decided(image, directory_assignment(1, 101, assigned)).records) == []


@pytest.mark.parametrize("directory", [LOST_DIRECTORY, directory_id(7)])
def test_a_replica_in_an_offline_directory_leaves_the_isr(directory: Uuid) -> None:
    image = cluster()
    decision = decided(image, directory_assignment(1, 101, {(ORDERS, 0): directory}))
    partition = altered(image, decision)
    assert (partition.leader, partition.isr) == (2, (2, 3))
    assert partition.directory_of(1) == directory


def test_the_only_replica_in_an_offline_directory_has_no_leader() -> None:
    image = image_with(topics={"orders": 1})
    decision = decided(image, directory_assignment(1, 101, {(ORDERS, 0): LOST_DIRECTORY}))
    assert altered(image, decision).leader == NO_LEADER


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ((b"?" * 16, 0), UnknownTopicId),
        ((ORDERS, 9), UnknownTopicOrPartition),
        ((ORDERS, 0), NotLeaderOrFollower),
    ],
)
def test_assignments_of_unknown_replicas_fail_alone(
    place: tuple[Uuid, int], error: type[KafkaError]
) -> None:
    image = replayed(cluster(), [registered(4)])
    decision = decided(image, directory_assignment(4, 104, {place: directory_id(4)}))
    (directory,) = decision.reply.directories
    assert directory.topics[0].partitions[0].error_code == error.code
    assert list(decision.records) == []


def test_assignments_need_a_metadata_version_with_directories() -> None:
    image = image_with(topics={"orders": 1}, levels={"metadata.version": 16})
    with pytest.raises(UnsupportedVersion):
        decided(image, directory_assignment(1, 101, {(ORDERS, 0): directory_id(1)}))
