"""Brokers, leaders and replicas as the clients of a listener see them."""

import pytest

from headrace.broker.topics.topology import (
    NO_NODE,
    controller_for_clients,
    leader_nodes,
    leader_of,
    live_brokers,
    offline_replicas,
    why_missing,
)
from headrace.errors import (
    InvalidTopicException,
    LeaderNotAvailable,
    ListenerNotFound,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from tests.builders.metadata_images import image_with

IMAGE = image_with(brokers=(1, 2, 3), fenced=(2,), topics={"t": 1}, replicas=(1, 2))
PARTITION = IMAGE.topics["t"].partitions[0]


def test_fenced_brokers_are_shown_only_on_request() -> None:
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


def test_a_fenced_broker_is_not_shown_as_a_leader() -> None:
    image = image_with(fenced=[1], topics={"t": 1})
    with pytest.raises(LeaderNotAvailable):
        leader_of(image, image.topics["t"].partitions[0], "PLAINTEXT")


def test_replicas_on_fenced_brokers_are_offline() -> None:
    assert offline_replicas(IMAGE, PARTITION, "PLAINTEXT") == [2]
    assert offline_replicas(IMAGE, PARTITION, "INTERNAL") == [1, 2]


def test_a_name_that_no_topic_can_have_is_reported_as_invalid() -> None:
    assert isinstance(why_missing("no such topic"), InvalidTopicException)
    assert isinstance(why_missing("nobody"), UnknownTopicOrPartition)
    assert isinstance(why_missing("__cluster_metadata"), UnknownTopicOrPartition)


def test_errors_give_the_addresses_of_their_leaders_once_for_a_listener() -> None:
    error = NotLeaderOrFollower("led by another node")
    error.current_leader = 1, 4
    unknown = NotLeaderOrFollower("led by a node that is gone")
    unknown.current_leader = 9, 4
    image = image_with(brokers=(1, 2))
    errors = [error, error, unknown, NotLeaderOrFollower("")]
    assert [one.host for one in leader_nodes(image, "PLAINTEXT", errors)] == ["host1"]
    assert leader_nodes(image, "OTHER", errors) == []
