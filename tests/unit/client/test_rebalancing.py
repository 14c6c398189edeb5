"""Callbacks of librdkafka reach the listener, whose seeks become start offsets."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from headrace.client.consumer import RebalanceListener
from headrace.client.rebalancing import Rebalancing, is_cooperative


class Client:
    """Records the calls that assign partitions."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, list[tuple[int, int]]]] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.reported.append(("assign", [(part.partition, part.offset) for part in partitions]))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.reported.append(
            ("incremental", [(part.partition, part.offset) for part in partitions])
        )


class Seeker(RebalanceListener):
    """Starts partition 1 at offset 5, as `Consumer.seek` does it."""

    rebalancing: Rebalancing

    def on_partitions_assigned(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        assert self.rebalancing.starts is not None
        self.rebalancing.starts["t", 1] = 5


def rebalancing(listener: RebalanceListener, *, cooperative: bool) -> Rebalancing:
    consumer = cast(Any, None)
    return Rebalancing(
        assigned=partial(listener.on_partitions_assigned, consumer),
        revoked=partial(listener.on_partitions_revoked, consumer),
        lost=partial(listener.on_partitions_lost, consumer),
        forget=lambda _: None,
        cooperative=cooperative,
    )


TWO = [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.mark.parametrize(("cooperative", "call"), [(False, "assign"), (True, "incremental")])
def test_a_seek_in_the_listener_is_part_of_the_assignment(cooperative: bool, call: str) -> None:
    """CON-11"""
    seeker, client = Seeker(), Client()
    seeker.rebalancing = rebalancing(seeker, cooperative=cooperative)
    seeker.rebalancing.on_assign(cast(Any, client), TWO)
    assert client.reported == [(call, [(0, -1001), (1, 5)])]
    assert seeker.rebalancing.starts is None


def test_without_a_seek_librdkafka_assigns_alone() -> None:
    """CON-11"""
    client = Client()
    rebalancing(RebalanceListener(), cooperative=False).on_assign(cast(Any, client), TWO)
    assert client.reported == []


def test_lost_partitions_count_as_revoked_by_default() -> None:
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
def test_cooperative_protocols_are_recognised(settings: dict[str, str], expected: bool) -> None:
    """CON-4"""
    assert is_cooperative(settings) == expected
