"""ElectLeaders, as a client asks for it."""

import pytest

from headrace.controller.decision import ClusterDefaults
from headrace.controller.elections import PREFERRED, UNCLEAN, elect_leaders
from headrace.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import NO_LEADER
from headrace.protocol.schemas.elect_leaders import TopicPartitions
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    applied,
    image_with,
    replayed,
    topic_id,
    with_partition,
)

DEFAULTS = ClusterDefaults()
ORDERS = topic_id("orders")
TWO = image_with(topics={"orders": 2}, brokers=[1, 2], replicas=[1, 2])


def test_leadership_goes_back_to_the_preferred_replica() -> None:
    """REP-11."""
    image = replayed(TWO, [PartitionChangeRecord(1, ORDERS, leader=2)])
    decision = elect_leaders(image, PREFERRED, [TopicPartitions("orders", [1])], DEFAULTS)
    assert decision.reply[0].error is None
    assert applied(image, decision).topics["orders"].partitions[1].leader == 1


def test_an_election_of_all_partitions_reports_only_changes() -> None:
    image = replayed(TWO, [PartitionChangeRecord(1, ORDERS, leader=2)])
    decision = elect_leaders(image, PREFERRED, None, DEFAULTS)
    assert [(one.topic, one.partition) for one in decision.reply] == [("orders", 1)]


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        (TopicPartitions("orders", [0]), ElectionNotNeeded),
        (TopicPartitions("orders", [7]), UnknownTopicOrPartition),
        (TopicPartitions("orders", [-1]), UnknownTopicOrPartition),
        (TopicPartitions("unknown", [0]), UnknownTopicOrPartition),
    ],
)
def test_invalid_partitions_are_rejected(
    partitions: TopicPartitions, error: type[Exception]
) -> None:
    decision = elect_leaders(TWO, PREFERRED, [partitions], DEFAULTS)
    assert type(decision.reply[0].error) is error
    assert list(decision.records) == []


def test_a_preferred_replica_that_is_away_cannot_lead() -> None:
    image = replayed(
        TWO,
        [
            PartitionChangeRecord(0, ORDERS, leader=2, isr=[2]),
            BrokerRegistrationChangeRecord(1, 101, fenced=1),
        ],
    )
    asked = [TopicPartitions("orders", [0])]
    decision = elect_leaders(image, PREFERRED, asked, DEFAULTS)
    assert type(decision.reply[0].error) is PreferredLeaderNotAvailable


def test_an_unclean_election_takes_any_active_replica() -> None:
    image = replayed(
        TWO,
        [
            PartitionChangeRecord(0, ORDERS, leader=NO_LEADER, isr=[1]),
            BrokerRegistrationChangeRecord(1, 101, fenced=1),
        ],
    )
    asked = [TopicPartitions("orders", [0])]
    decision = elect_leaders(image, UNCLEAN, asked, DEFAULTS)
    assert applied(image, decision).topics["orders"].partitions[0].leader == 2
    nobody = replayed(image, [BrokerRegistrationChangeRecord(2, 102, fenced=1)])
    decision = elect_leaders(nobody, UNCLEAN, asked, DEFAULTS)
    assert type(decision.reply[0].error) is EligibleLeadersNotAvailable


def test_unknown_types_of_elections_are_rejected() -> None:
    with pytest.raises(InvalidRequest):
        elect_leaders(TWO, 5, None, DEFAULTS)


def test_leaders_of_several_brokers_return_and_others_are_reported() -> None:
    image = image_with(topics={"orders": 3}, brokers=[1, 2, 3], replicas=[1, 2, 3])
    image = with_partition(image, "orders", 0, leader=2)
    image = with_partition(image, "orders", 1, leader=3, isr=[2, 3])
    decision = elect_leaders(image, PREFERRED, None, DEFAULTS)
    errors = {one.partition: type(one.error) for one in decision.reply}
    assert errors == {0: type(None), 1: PreferredLeaderNotAvailable}
    partitions = applied(image, decision).topics["orders"].partitions
    assert [one.leader for one in partitions] == [1, 3, 1]


def test_an_unclean_election_prefers_an_eligible_leader() -> None:
    image = image_with(
        topics={"orders": 1}, brokers=[1, 2, 3], replicas=[1, 2, 3], levels=KAFKA_LEVELS
    )
    image = with_partition(image, "orders", 0, leader=NO_LEADER, isr=[], elr=[3])
    asked = [TopicPartitions("orders", [0])]
    image = applied(image, elect_leaders(image, UNCLEAN, asked, DEFAULTS))
    partition = image.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (3, (3,), 0)
