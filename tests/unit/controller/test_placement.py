"""Replicas spread over racks and brokers, and leaders are at work."""

from collections import Counter

import pytest

from headrace.controller.placement import place_replicas
from headrace.errors import InvalidReplicationFactor
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.records.metadata import BrokerRegistrationChangeRecord
from tests.builders.metadata_images import image_with, registered, replayed


def first(bound: int) -> int:
    """No chance at all."""
    return 0


def in_racks(**racks: list[int]) -> MetadataImage:
    """Brokers by rack."""
    return replayed(
        image_with(brokers=[]),
        [registered(broker, rack=rack) for rack, brokers in racks.items() for broker in brokers],
    )


def test_one_broker_takes_all() -> None:
    assert place_replicas(image_with(), 3, 1) == [[1], [1], [1]]


def test_leaders_take_turns() -> None:
    """LOG-7."""
    placed = place_replicas(image_with(brokers=range(4)), 8, 2, first)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(4), 2)
    assert all(len(set(replicas)) == 2 for replicas in placed)


def test_replicas_of_a_partition_are_in_different_racks() -> None:
    image = in_racks(a=[0, 1, 2], b=[3, 4, 5], c=[6, 7, 8])
    for replicas in place_replicas(image, 9, 3):
        assert sorted(replica // 3 for replica in replicas) == [0, 1, 2]


def test_every_broker_gets_its_share() -> None:
    image = in_racks(a=[0, 1, 2], b=[3, 4, 5], c=[6, 7, 8])
    placed = place_replicas(image, 9, 3, first)
    assert set(Counter(replica for replicas in placed for replica in replicas).values()) == {3}


def test_more_replicas_than_racks_still_go_to_different_brokers() -> None:
    for replicas in place_replicas(in_racks(a=[0, 1], b=[2]), 5, 3):
        assert sorted(replicas) == [0, 1, 2]


def test_a_fenced_broker_never_leads_and_serves_last() -> None:
    image = image_with(brokers=range(3), fenced=[1])
    for replicas in place_replicas(image, 6, 2):
        assert 1 not in replicas
    for replicas in place_replicas(image, 6, 3):
        assert replicas[2] == 1


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(InvalidReplicationFactor, match="2 are registered"):
        place_replicas(image_with(brokers=[1, 2]), 1, 3)


def test_a_start_by_chance_spreads_single_partitions() -> None:
    image = image_with(brokers=range(3))
    leaders = {place_replicas(image, 1, 1)[0][0] for _ in range(100)}
    assert leaders == {0, 1, 2}


def test_a_broker_that_is_shutting_down_gets_no_replica() -> None:
    leaving = BrokerRegistrationChangeRecord(2, 102, in_controlled_shutdown=1)
    image = replayed(image_with(brokers=[1, 2, 3]), [leaving])
    for replicas in place_replicas(image, 6, 2):
        assert 2 not in replicas
    with pytest.raises(InvalidReplicationFactor, match="2 are registered"):
        place_replicas(image, 1, 3)
    stopped = replayed(image, [BrokerRegistrationChangeRecord(2, 102, fenced=1)])
    assert place_replicas(stopped, 1, 3)[0][2] == 2


def test_a_cluster_without_active_broker_places_nothing() -> None:
    for brokers in ([1], [1, 2]):
        with pytest.raises(InvalidReplicationFactor, match="fenced or shutting down"):
            place_replicas(image_with(brokers=brokers, fenced=brokers), 1, 1)


def test_the_leaders_of_one_broker_share_their_replicas_with_all_others() -> None:
    """All leaders of a failed broker would otherwise move to one other broker."""
    placed = place_replicas(image_with(brokers=range(5)), 500, 3)
    leaders = Counter(replicas[0] for replicas in placed)
    assert leaders == dict.fromkeys(range(5), 100)
    for broker in range(5):
        next_leaders = Counter(replicas[1] for replicas in placed if replicas[0] == broker)
        assert len(next_leaders) == 4
        assert max(next_leaders.values()) < 50


def test_shuffled_racks_still_get_one_replica_each() -> None:
    image = in_racks(a=[0, 1, 2], b=[3, 4, 5], c=[6, 7, 8])
    for replicas in place_replicas(image, 200, 3):
        assert sorted(replica // 3 for replica in replicas) == [0, 1, 2]
