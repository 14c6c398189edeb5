"""What clients of a listener are told of brokers, leaders and replicas."""

import pytest

from headrace.broker.topics.topology import (
    NO_NODE,
    controller_for_clients,
    leader_of,
    live_brokers,
    offline_replicas,
    why_missing,
)
from headrace.errors import (
    InvalidTopicException,
    ListenerNotFound,
    UnknownTopicOrPartition,
)
from tests.images import image_with

IMAGE = image_with(brokers=(1, 2, 3), fenced=(2,), topics={"t": 1}, replicas=(1, 2))
PARTITION = IMAGE.topics["t"].partitions[0]


def test_fenced_brokers_are_not_shown_unless_asked_for() -> None:
    assert [broker.id for broker, _ in live_brokers(IMAGE, "PLAINTEXT")] == [1, 3]
    everyone = live_brokers(IMAGE, "PLAINTEXT", include_fenced=True)
    assert [broker.id for broker, _ in everyone] == [1, 2, 3]


def test_brokers_without_the_listener_are_not_shown() -> None:
    assert list(live_brokers(IMAGE, "INTERNAL")) == []


def test_clients_take_any_live_broker_for_the_controller() -> None:
    assert controller_for_clients(IMAGE, 3) == 3
    assert controller_for_clients(IMAGE, 2) == 1
    assert controller_for_clients(image_with(brokers=()), 1) == NO_NODE


def test_a_leader_must_have_the_listener_of_the_client() -> None:
    assert leader_of(IMAGE, PARTITION, "PLAINTEXT") == PARTITION.leader
    with pytest.raises(ListenerNotFound):
        leader_of(IMAGE, PARTITION, "INTERNAL")


def test_replicas_on_fenced_brokers_are_offline() -> None:
    assert offline_replicas(IMAGE, PARTITION, "PLAINTEXT") == [2]
    assert offline_replicas(IMAGE, PARTITION, "INTERNAL") == [1, 2]


def test_a_name_that_no_topic_can_have_is_told_as_such() -> None:
    assert isinstance(why_missing("no such topic"), InvalidTopicException)
    assert isinstance(why_missing("nobody"), UnknownTopicOrPartition)
    assert isinstance(why_missing("__cluster_metadata"), UnknownTopicOrPartition)
