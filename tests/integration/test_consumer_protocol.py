"""Consumer groups of the new protocol (KIP-848) with real clients: librdkafka and Java."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription

from tests.clients.librdkafka import (
    SECONDS_MAX,
    admin,
    consumer,
    create_topic,
    numbered,
    produce,
    unique_name,
)
from tests.integration.conftest import StartNode
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, eventually

# Heartbeats come soon, so that members meet soon.
LIVELY = {
    "group_consumer_heartbeat_interval_ms": 200,
    "group_consumer_min_heartbeat_interval_ms": 100,
    "group_consumer_session_timeout_ms": 5_000,
    "group_consumer_min_session_timeout_ms": 1_000,
    "group_consumer_assignment_interval_ms": 0,
    "group_initial_rebalance_delay_ms": 0,
}
CLASSIC: dict[str, Any] = {
    "group_protocol": "classic",
    "partition_assignment_strategy": "cooperative-sticky",
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 6_000,
}


class Members:
    """Consumers of one group, polled together."""

    def __init__(self, node: Node, topics: list[str]) -> None:
        self.node = node
        self.topics = topics
        self.group = unique_name("group")
        self.clients: list[Consumer] = []
        self._stack = ExitStack()

    def join(self, topics: list[str] | None = None, **config: object) -> Consumer:
        settings = {"group_protocol": "consumer", "auto_offset_reset": "earliest", **config}
        client = self._stack.enter_context(consumer(self.node, group_id=self.group, **settings))
        client.subscribe(topics or self.topics)
        self.clients.append(client)
        return client

    def leave(self, client: Consumer) -> None:
        self.clients.remove(client)
        client.close()

    def until(self, condition: Callable[[], bool]) -> None:
        """Poll everyone until something holds."""

        def polled() -> bool:
            for client in self.clients:
                client.poll(0.02)
            return condition()

        eventually(polled)

    def share(self, *counts: int) -> None:
        """Poll until the members have so many partitions, and no partition twice."""
        self.until(lambda: sorted(map(len, map(owned, self.clients))) == sorted(counts))
        together = [one for client in self.clients for one in owned(client)]
        assert len(together) == len(set(together))

    def describe(self) -> ConsumerGroupDescription:
        client = admin(self.node)
        described = client.describe_consumer_groups([self.group])[self.group].result(SECONDS_MAX)
        assert isinstance(described, ConsumerGroupDescription)
        return described

    def close(self) -> None:
        self._stack.close()


def owned(client: Consumer) -> list[tuple[str, int]]:
    return [(one.topic, one.partition) for one in client.assignment()]


@pytest.fixture
def lively(start_node: StartNode) -> Node:
    return start_node(**LIVELY)


@pytest.fixture
def members(lively: Node) -> Iterator[Members]:
    group = Members(lively, [create_topic(lively, partitions=6)])
    yield group
    group.close()


def test_members_share_partitions_as_they_come_and_go(members: Members) -> None:
    """CON-3, CON-4, CON-5."""
    members.join()
    members.share(6)
    second = members.join()
    members.share(3, 3)
    members.join()
    members.share(2, 2, 2)
    members.leave(second)
    members.share(3, 3)


def test_a_successor_continues_at_the_last_commit(members: Members) -> None:
    """CON-6, CON-7: also after the broker was killed."""
    (topic,) = members.topics
    produce(members.node, topic, numbered(10))
    first = members.join()
    members.share(6)
    first.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    members.node.kill()
    members.node.start()
    members.leave(first)
    second = members.join()
    read: list[int | None] = []

    def has_read() -> bool:
        message = second.poll(0.1)
        if message is not None and message.error() is None:
            read.append(message.offset())
        return len(read) == 6

    eventually(has_read)
    assert read == [4, 5, 6, 7, 8, 9]


@pytest.mark.usefixtures("only_headrace")
def test_members_outlive_the_broker(members: Members) -> None:
    """Epochs come from the log: after a crash no member is fenced, and nothing moves."""
    members.join()
    members.join()
    members.share(3, 3)
    before = [owned(client) for client in members.clients]
    members.node.kill()
    members.node.start()
    members.join()
    members.share(2, 2, 2)
    for client, had in zip(members.clients, before, strict=False):
        assert set(owned(client)) < set(had)


def test_a_pattern_finds_topics_that_come_later(lively: Node) -> None:
    """CON-1."""
    prefix = unique_name("pattern")
    members = Members(lively, [f"^{prefix}-.*"])
    create_topic(lively, name=f"{prefix}-a", partitions=2)
    members.join()
    members.share(2)
    create_topic(lively, name=f"{prefix}-b", partitions=3)
    members.share(5)
    members.close()


def test_a_static_member_keeps_its_partitions_over_a_restart(members: Members) -> None:
    first = members.join(group_instance_id="desk-1")
    members.join(group_instance_id="desk-2")
    members.share(3, 3)
    had = owned(first)
    members.leave(first)
    back = members.join(group_instance_id="desk-1")
    members.share(3, 3)
    assert sorted(owned(back)) == sorted(had)


def test_a_group_migrates_to_the_new_protocol_and_back(members: Members) -> None:
    """Some member works at every moment, and no commit is lost."""
    (topic,) = members.topics
    old = members.join(**CLASSIC)
    members.share(6)
    assert members.describe().type.name == "CLASSIC"
    old.commit(offsets=[TopicPartition(topic, 2, 7)], asynchronous=False)
    new = members.join()
    members.share(3, 3)
    assert members.describe().type.name == "CONSUMER"
    members.join(**CLASSIC)
    members.share(2, 2, 2)
    members.leave(new)
    members.share(3, 3)
    assert members.describe().type.name == "CLASSIC"
    (committed,) = old.committed([TopicPartition(topic, 2)], SECONDS_MAX)
    assert committed.offset == 7


def test_java_consumers_speak_the_new_protocol(lively: Node, kafka_release: KafkaRelease) -> None:
    """CON-2, CON-12: the console consumer, and the description of its group by Kafka's tools."""
    topic = create_topic(lively, partitions=3)
    for partition in range(3):
        produce(lively, topic, numbered(10), partition=partition)
    server = ("--bootstrap-server", lively.address)
    read = kafka_release.run(
        "kafka-console-consumer",
        *server,
        *("--topic", topic, "--group", "java", "--from-beginning"),
        *("--max-messages", "30", "--timeout-ms", "20000"),
        *("--command-property", "group.protocol=consumer"),
    )
    assert len(read.split()) == 30
    listed = kafka_release.run("kafka-consumer-groups", *server, "--list", "--type", "consumer")
    assert ["java", "Consumer"] in [line.split() for line in listed.splitlines()]
    described = kafka_release.run("kafka-consumer-groups", *server, "--describe", "--group", "java")
    assert described.count(topic) == 3
    rows = [line.split() for line in described.splitlines() if topic in line]
    assert [row[5] for row in rows] == ["0", "0", "0"]


def test_a_group_has_configs_of_its_own(lively: Node, kafka_release: KafkaRelease) -> None:
    entity = ("--bootstrap-server", lively.address, "--entity-type", "groups")
    change = ("--entity-name", "mine", "--add-config", "consumer.session.timeout.ms=6000")
    kafka_release.run("kafka-configs", *entity, "--alter", *change)
    described = kafka_release.run("kafka-configs", *entity, "--describe", "--entity-name", "mine")
    assert "consumer.session.timeout.ms=6000" in described
