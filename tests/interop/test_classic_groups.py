"""Classic groups and their offsets move between Headrace and Kafka with their directory."""

from typing import Any

from confluent_kafka import TopicPartition

from tests.clients.librdkafka import SECONDS_MAX, consumer, create_topic
from tests.interop.conftest import Pair
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, eventually

GROUP, SIMPLE = "classics", "loners"


def test_a_classic_group_goes_to_kafka_and_back(pair: Pair, kafka_release: KafkaRelease) -> None:
    """CON-6, CON-12: a static member is still in its generation, with its share and its offsets."""
    ours, theirs = pair
    ours.start()
    topic = create_topic(ours, partitions=3)
    join_commit_and_stay(ours, topic, 5)
    before = members(kafka_release, ours)
    assert len(before) == 1
    ours.kill()

    theirs.start()
    assert members(kafka_release, theirs) == before
    assert committed(theirs, GROUP, topic) == [5, 5, 5]
    assert committed(theirs, SIMPLE, topic) == [7, -1001, -1001]
    join_commit_and_stay(theirs, topic, 9)
    after = members(kafka_release, theirs)
    theirs.kill()

    ours.start()
    assert members(kafka_release, ours) == after
    assert committed(ours, GROUP, topic) == [9, 9, 9]
    assert committed(ours, SIMPLE, topic) == [7, -1001, -1001]


def test_groups_that_kafka_made_are_ours_to_use(pair: Pair, kafka_release: KafkaRelease) -> None:
    """OPS-1: the other way round, from Kafka's own directory."""
    ours, theirs = pair
    theirs.start()
    topic = create_topic(theirs, partitions=3)
    join_commit_and_stay(theirs, topic, 3)
    before = members(kafka_release, theirs)
    theirs.stop()

    ours.start()
    assert members(kafka_release, ours) == before
    assert committed(ours, GROUP, topic) == [3, 3, 3]
    join_commit_and_stay(ours, topic, 4)
    kafka_release.run(
        "kafka-consumer-groups", "--bootstrap-server", ours.address, "--delete", "--group", SIMPLE
    )
    ours.stop()

    theirs.start()
    assert committed(theirs, GROUP, topic) == [4, 4, 4]
    assert committed(theirs, SIMPLE, topic) == [-1001] * 3


def join_commit_and_stay(node: Node, topic: str, offset: int) -> None:
    """A static member does not leave when it closes."""
    config: dict[str, Any] = {"group_instance_id": "desk-1", "session_timeout_ms": 300_000}
    with consumer(node, group_id=GROUP, auto_offset_reset="earliest", **config) as client:
        client.subscribe([topic])

        def has_all() -> bool:
            client.poll(0.1)
            return len(client.assignment()) == 3

        eventually(has_all)
        places = [TopicPartition(topic, number, offset) for number in range(3)]
        client.commit(offsets=places, asynchronous=False)
    with consumer(node, group_id=SIMPLE) as client:
        client.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)


def members(kafka_release: KafkaRelease, node: Node) -> list[list[str]]:
    """Member, instance, host, client and share, as Kafka's own tool sees them."""
    options = ("--describe", "--group", GROUP, "--members", "--verbose")
    shown = kafka_release.run("kafka-consumer-groups", "--bootstrap-server", node.address, *options)
    return [line.split() for line in shown.splitlines() if line.startswith(GROUP)]


def committed(node: Node, group: str, topic: str) -> list[int]:
    with consumer(node, group_id=group) as client:
        places = [TopicPartition(topic, number) for number in range(3)]
        return [place.offset for place in client.committed(places, SECONDS_MAX)]
