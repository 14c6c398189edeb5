"""From librdkafka's news to a listener, and back to where partitions start."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from headrace.client.rebalancing import RebalanceListener, Rebalancing, is_cooperative


class Client:
    """Writes down what it is told to assign."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[tuple[int, int]]]] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.told.append(("assign", [(part.partition, part.offset) for part in partitions]))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.told.append(("incremental", [(part.partition, part.offset) for part in partitions]))


class Seeker(RebalanceListener):
    """Starts partition 1 at offset 5, as `Consumer.seek` does it."""

    rebalancing: Rebalancing

    def on_partitions_assigned(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        assert self.rebalancing.starts is not None
        self.rebalancing.starts["t", 1] = 5


def rebalancing(listener: RebalanceListener, *, cooperative: bool) -> Rebalancing:
    return Rebalancing(cast(Any, None), listener, lambda _: None, cooperative=cooperative)


TWO = [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.mark.parametrize(("cooperative", "call"), [(False, "assign"), (True, "incremental")])
def test_a_seek_in_the_listener_is_part_of_the_assignment(cooperative: bool, call: str) -> None:
    """CON-11"""
    seeker, client = Seeker(), Client()
    seeker.rebalancing = rebalancing(seeker, cooperative=cooperative)
    seeker.rebalancing.on_assign(cast(Any, client), TWO)
    assert client.told == [(call, [(0, -1001), (1, 5)])]
    assert seeker.rebalancing.starts is None


def test_without_a_seek_librdkafka_assigns_by_itself() -> None:
    """CON-11"""
    client = Client()
    rebalancing(RebalanceListener(), cooperative=False).on_assign(cast(Any, client), TWO)
    assert client.told == []


def test_lost_partitions_are_told_as_revoked_unless_the_listener_differs() -> None:
    """CON-11"""
    heard: list[str] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(self, consumer: Any, partitions: Any) -> None:
            heard.append("revoked")

    rebalancing(Listener(), cooperative=False).on_lost(cast(Any, None), TWO)
    assert heard == ["revoked"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"partition.assignment.strategy": "range,roundrobin"}, False),
        ({"partition.assignment.strategy": "cooperative-sticky"}, True),
        ({"group.protocol": "consumer"}, True),
    ],
)
def test_which_protocols_move_partitions_one_by_one(
    settings: dict[str, str], expected: bool
) -> None:
    """CON-4"""
    assert is_cooperative(settings) == expected
