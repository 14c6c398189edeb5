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
from tests.images import carried_out, image_with, replayed, topic_id

DEFAULTS = ClusterDefaults()
ORDERS = topic_id("orders")
TWO = image_with(topics={"orders": 2}, brokers=[1, 2], replicas=[1, 2])


def test_leadership_goes_back_to_the_preferred_replica() -> None:
    """REP-11."""
    image = replayed(TWO, [PartitionChangeRecord(1, ORDERS, leader=2)])
    decision = elect_leaders(image, PREFERRED, [TopicPartitions("orders", [1])], DEFAULTS)
    assert decision.reply[0].error is None
    assert carried_out(image, decision).topics["orders"].partitions[1].leader == 1


def test_all_partitions_are_asked_for_by_none_and_only_changes_are_told() -> None:
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
def test_refusals(partitions: TopicPartitions, error: type[Exception]) -> None:
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


def test_an_unclean_election_takes_whoever_is_there() -> None:
    image = replayed(
        TWO,
        [
            PartitionChangeRecord(0, ORDERS, leader=NO_LEADER, isr=[1]),
            BrokerRegistrationChangeRecord(1, 101, fenced=1),
        ],
    )
    asked = [TopicPartitions("orders", [0])]
    decision = elect_leaders(image, UNCLEAN, asked, DEFAULTS)
    assert carried_out(image, decision).topics["orders"].partitions[0].leader == 2
    nobody = replayed(image, [BrokerRegistrationChangeRecord(2, 102, fenced=1)])
    decision = elect_leaders(nobody, UNCLEAN, asked, DEFAULTS)
    assert type(decision.reply[0].error) is EligibleLeadersNotAvailable


def test_unknown_kinds_of_elections() -> None:
    with pytest.raises(InvalidRequest):
        elect_leaders(TWO, 5, None, DEFAULTS)
