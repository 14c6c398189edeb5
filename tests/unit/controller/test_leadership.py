"""Elections: from the ISR, from eligible leaders, uncleanly where allowed, or not at all."""

from typing import Any

import msgspec
import pytest

from headrace.controller.decision import ClusterDefaults
from headrace.controller.leadership import Election, PartitionChange, arrive, leave, retire
from headrace.metadata.image import LOST_DIRECTORY, NO_LEADER, MetadataImage, PartitionImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
)
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    image_with,
    replayed,
    topic_id,
    with_partition,
)

DEFAULTS = ClusterDefaults()
ORDERS = topic_id("orders")


def change(alive: list[int], partition: PartitionImage, **options: Any) -> PartitionChange:
    options = {"isr": partition.isr, **options}
    return PartitionChange(
        topic_id=ORDERS,
        index=0,
        partition=partition,
        is_acceptable=lambda replica: replica in alive,
        **options,
    )


def of(replicas: list[int], isr: list[int], leader: int, **fields: Any) -> PartitionImage:
    return PartitionImage(tuple(replicas), tuple(isr), leader, **fields)


def fields_of(record: Message | None) -> dict[str, Any]:
    """Return the fields of a record that change the partition."""
    assert isinstance(record, PartitionChangeRecord)
    unchanged = PartitionChangeRecord(partition_id=0, topic_id=ORDERS)
    return {
        name: value
        for name, value in msgspec.structs.asdict(record).items()
        if value != getattr(unchanged, name)
    }


def test_a_leader_in_sync_stays() -> None:
    assert change([1, 2], of([2, 1], [1, 2], 1)).record() is None


def test_the_preferred_replica_takes_over_if_asked_for_and_in_sync() -> None:
    partition = of([2, 1], [1, 2], 1)
    assert fields_of(change([1, 2], partition, election=Election.PREFERRED).record()) == {
        "leader": 2
    }
    partition = of([2, 1], [1], 1)
    assert change([1, 2], partition, election=Election.PREFERRED).record() is None


def test_the_first_replica_in_sync_follows_a_lost_leader() -> None:
    """REP-9(a)"""
    record = change([2, 3], of([1, 3, 2], [1, 2, 3], 1), isr=(2, 3)).record()
    assert fields_of(record) == {"leader": 3, "isr": [2, 3]}


def test_a_partition_without_active_in_sync_replicas_has_no_leader() -> None:
    record = change([2], of([1, 2], [1], 1), isr=()).record()
    assert fields_of(record) == {"leader": NO_LEADER}


def test_an_unclean_election_needs_permission() -> None:
    """REP-9(b)"""
    partition = of([1, 2], [1], NO_LEADER)
    assert change([2], partition).record() is None
    record = change([2], partition, election=Election.UNCLEAN).record()
    assert fields_of(record) == {"leader": 2, "isr": [2], "leader_recovery_state": 1}


def test_an_isr_shrink_alone_keeps_the_term_except_for_old_brokers() -> None:
    partition = of([1, 2], [1, 2], 1)
    assert fields_of(change([1], partition, isr=(1,)).record()) == {"isr": [1]}
    record = change([1], partition, isr=(1,), bumps_epoch_on_isr_shrink=True).record()
    assert fields_of(record) == {"isr": [1], "leader": 1}


def test_a_replica_that_stops_in_a_small_isr_stays_eligible() -> None:
    """As Kafka 4.3 writes it when a broker with the only replica stops."""
    record = change([], of([1], [1], 1), isr=(), uses_elr=True).record()
    assert fields_of(record) == {
        "isr": [],
        "leader": NO_LEADER,
        "eligible_leader_replicas": [1],
        "last_known_elr": [1],
    }


def test_an_eligible_leader_brings_the_isr_back() -> None:
    """As Kafka 4.3 writes it when that broker is there again."""
    partition = of([1], [], NO_LEADER, elr=(1,), last_known_elr=(1,))
    assert fields_of(change([1], partition, uses_elr=True).record()) == {
        "isr": [1],
        "leader": 1,
        "eligible_leader_replicas": [],
        "last_known_elr": [],
    }


def test_a_crashed_replica_is_not_eligible() -> None:
    record = change(
        [2],
        of([1, 2], [1, 2], 1),
        isr=(2,),
        uses_elr=True,
        min_isr=2,
        shut_down_uncleanly=frozenset({1}),
    ).record()
    assert fields_of(record) == {"leader": 2, "isr": [2]}


def test_the_last_known_leader_is_better_than_none() -> None:
    partition = of([1, 2], [], NO_LEADER, last_known_elr=(2,))
    record = change([1, 2], partition, uses_elr=True).record()
    assert fields_of(record) == {
        "leader": 2,
        "isr": [2],
        "leader_recovery_state": 1,
        "last_known_elr": [],
    }
    assert change([1], partition, uses_elr=True).record() is None


def test_a_large_enough_isr_needs_no_eligible_leaders() -> None:
    partition = of([1, 2, 3], [1], 1, elr=(2,))
    record = change([1, 2, 3], partition, isr=(1, 2), uses_elr=True, min_isr=2).record()
    assert fields_of(record) == {"isr": [1, 2], "eligible_leader_replicas": []}


def test_eligible_leaders_count_once_more_after_they_are_disabled() -> None:
    partition = of([1, 2], [], NO_LEADER, elr=(2,))
    assert fields_of(change([1, 2], partition).record()) == {
        "isr": [2],
        "leader": 2,
        "eligible_leader_replicas": [],
    }


def test_a_partition_that_never_had_a_leader_has_no_last_known_one() -> None:
    record = change([], of([1, 2], [1], NO_LEADER), isr=(), uses_elr=True).record()
    assert fields_of(record) == {"isr": [], "eligible_leader_replicas": [1]}


# Brokers that come and go.


def two_brokers(levels: dict[str, int] | None = None) -> MetadataImage:
    return image_with(
        topics={"orders": 1},
        brokers=[1, 2],
        replicas=[1, 2],
        levels=levels or {"metadata.version": 25},
    )


def test_a_broker_that_leaves_hands_over() -> None:
    (record,) = leave(two_brokers(), 1, DEFAULTS)
    assert fields_of(record.message) == {"leader": 2, "isr": [2]}
    assert record.version == 2


def test_a_partition_without_another_replica_waits_for_its_broker() -> None:
    assert leave(image_with(topics={"orders": 3}), 1, DEFAULTS) == []
    assert leave(image_with(topics={"orders": 3}, levels=KAFKA_LEVELS), 1, DEFAULTS) == []


def test_after_a_crash_the_term_is_a_new_one() -> None:
    """Records may be lost with the page cache, and others take their offsets."""
    image = image_with(topics={"orders": 2})
    records = leave(image, 1, DEFAULTS, unclean=True, new_term=True)
    after = replayed(image, [record.message for record in records])
    assert [one.leader_epoch for one in after.topics["orders"].partitions] == [1, 1]
    assert [one.leader for one in after.topics["orders"].partitions] == [1, 1]


def test_partitions_elsewhere_are_left_alone() -> None:
    image = image_with(topics={"orders": 1}, brokers=[1, 2], replicas=[2])
    assert leave(image, 1, DEFAULTS, new_term=True) == []


def test_a_retired_broker_leaves_its_partitions_without_a_leader() -> None:
    image = image_with(topics={"orders": 1})
    after = replayed(image, [record.message for record in retire(image, 1, DEFAULTS)])
    partition = after.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr) == (NO_LEADER, (1,))


def test_a_retired_broker_is_not_eligible_to_lead() -> None:
    """It has no epoch any more that would show a crash when it registers again."""
    image = image_with(topics={"orders": 1}, brokers=[1, 2], replicas=[1, 2], levels=KAFKA_LEVELS)
    image = with_partition(image, "orders", 0, isr=[], leader=NO_LEADER, elr=[1, 2])
    image = replayed(image, [BrokerRegistrationChangeRecord(2, 102, fenced=1)])
    after = replayed(image, [record.message for record in retire(image, 1, DEFAULTS)])
    assert after.topics["orders"].partitions[0].elr == (2,)


def leaderless(**options: Any) -> MetadataImage:
    image = image_with(topics={"orders": 1}, **options)
    return replayed(image, [PartitionChangeRecord(0, ORDERS, leader=NO_LEADER)])


def test_an_arriving_broker_leads_partitions_that_waited_for_it() -> None:
    image = leaderless(fenced=[1])
    (record,) = arrive(image, image.brokers[1], DEFAULTS)
    assert fields_of(record.message) == {"leader": 1}


def test_an_arriving_broker_does_not_lead_from_a_lost_directory() -> None:
    image = replayed(leaderless(), [PartitionChangeRecord(0, ORDERS, directories=[LOST_DIRECTORY])])
    assert arrive(image, image.brokers[1], DEFAULTS) == []


@pytest.mark.parametrize("where", ["orders", ""])
def test_unclean_elections_are_allowed_by_topic_or_cluster(where: str) -> None:
    image = image_with(topics={"orders": 1}, brokers=[1, 2], replicas=[1, 2])
    kind = 2 if where else 4
    image = replayed(
        image,
        [
            PartitionChangeRecord(0, ORDERS, leader=NO_LEADER, isr=[1]),
            BrokerRegistrationChangeRecord(1, 101, fenced=1),
        ],
    )
    assert arrive(image, image.brokers[2], DEFAULTS) == []
    allowed = replayed(image, [ConfigRecord(kind, where, "unclean.leader.election.enable", "true")])
    (record,) = arrive(allowed, allowed.brokers[2], DEFAULTS)
    assert fields_of(record.message) == {
        "leader": 2,
        "isr": [2],
        "leader_recovery_state": 1,
    }
