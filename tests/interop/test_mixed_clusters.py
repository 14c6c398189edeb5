"""Brokers of Headrace and of Apache Kafka in one cluster."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from headrace.cli.cluster_parent import node_command
from headrace.cli.main import main
from headrace.client.admin import Admin
from headrace.client.descriptions import PartitionDescription
from headrace.client.elections import ElectionType
from headrace.settings.properties import parse, render
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import HOST, NodeProcess
from tests.clients.librdkafka import Addressed, create, numbered, produce, read_values
from tests.interop.conftest import Everyone
from tests.processes.kafka import KafkaRelease
from tests.processes.kafka_clusters import KafkaTwins, watched
from tests.processes.nodes import Kafka, Node, eventually, free_port

TOPIC = "mixed"
COUNT = 500
PARTITIONS = (0, 1)
ONE_PARTITION_OF_OFFSETS = {"offsets.topic.num.partitions": "1"}
# Kafka's controller registers a broker that starts again only when its old session has ended.
SHORT_SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


def test_a_broker_of_kafka_joins_our_controllers(
    kafka_release: KafkaRelease, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """REP-1, REP-5: it follows, leads, is killed, and comes back."""
    with ClusterProcess(tmp_path / "headrace", ONE_PARTITION_OF_OFFSETS) as cluster:
        theirs = Node(Kafka(), tmp_path / "kafka", {})
        first = parse(cluster.node(1).data_dir.with_suffix(".properties").read_text())
        theirs.settings = broker_properties(4, theirs, first)
        format_broker(theirs, cluster_id_of(cluster.node(1).data_dir))
        everyone = Everyone(f"{cluster.bootstrap_servers},{theirs.address}")
        with watched(request, [theirs]):
            theirs.start()
            create_topic(everyone, [[4, 1, 2], [1, 4, 2]])
            wait_for(everyone, lambda parts: leaders(parts) == [4, 1] and are_in_sync(parts))
            write(everyone)
            theirs.kill()
            wait_for(everyone, lambda parts: 4 not in leaders(parts) and isr_without(parts, 4))
            write(everyone)
            theirs.start()
            wait_for(everyone, are_in_sync)
            elect(everyone)
            wait_for(everyone, lambda parts: leaders(parts) == [4, 1])
            write(everyone)
            assert_complete(everyone, writes=3)
            theirs.stop()
            wait_for(everyone, lambda parts: isr_without(parts, 4))
        cluster.stop()
        assert_same_bytes(theirs.data, *(cluster.node(number).data_dir for number in (1, 2)))


def test_our_broker_joins_a_controller_of_kafka(
    kafka_release: KafkaRelease, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """REP-1, REP-13: it follows, leads, is followed, and leaves by controlled shutdown."""
    theirs = Node(Kafka(), tmp_path / "kafka", SHORT_SESSIONS)
    ours = OurBroker(2, tmp_path / "headrace")
    with watched(request, [theirs]):
        theirs.start()
        try:
            ours.format_for(theirs)
            ours.process.launch(ours.command)
            ours.process.wait_until_ready()
            everyone = Everyone(f"{theirs.address},{ours.address}")
            create_topic(everyone, [[2, 1], [1, 2]])
            wait_for(everyone, lambda parts: leaders(parts) == [2, 1] and are_in_sync(parts))
            write(everyone)
            ours.process.stop()
            remaining = wait_for(everyone, lambda parts: leaders(parts) == [1, 1])
            assert [part.isr for part in remaining] == [[1], [1]]
            assert "unfenced" not in ours.process.log
            write(everyone)
            ours.process.launch(ours.command)
            ours.process.wait_until_ready()
            wait_for(everyone, are_in_sync)
            elect(everyone)
            wait_for(everyone, lambda parts: leaders(parts) == [2, 1])
            write(everyone)
            assert_complete(everyone, writes=3)
        finally:
            ours.process.stop()
    assert_same_bytes(theirs.data, ours.data)


def test_nodes_of_a_cluster_are_replaced_one_by_one(
    kafka_release: KafkaRelease, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """REP-14: controllers of both vote for each other, and follow each other's metadata log."""
    settings = {**ONE_PARTITION_OF_OFFSETS, **SHORT_SESSIONS}
    with ClusterProcess(tmp_path / "headrace", settings) as cluster:
        twins = KafkaTwins(cluster, tmp_path / "kafka")
        everyone = Everyone(cluster.bootstrap_servers)
        create_topic(everyone, [[1, 2, 3], [2, 3, 1]])
        with watched(request, twins.nodes):
            for ours, theirs in zip(cluster.nodes, twins.nodes, strict=True):
                ours.stop()
                write(everyone)
                theirs.start()
                cluster.wait_until_in_sync()
            for ours, theirs in zip(cluster.nodes, twins.nodes, strict=True):
                theirs.stop()
                write(everyone)
                ours.start()
                cluster.wait_until_in_sync()
            assert_complete(everyone, writes=6)
        cluster.stop()
        assert_same_bytes(*(node.data_dir for node in cluster.nodes))


class OurBroker:
    """A broker of Headrace without a controller."""

    def __init__(self, node_id: int, directory: Path) -> None:
        self.node_id = node_id
        self.data = directory / "data"
        self.address = f"{HOST}:{free_port()}"
        self.process = NodeProcess(f"node-{node_id}", directory / "node.log")
        self._properties = directory / "node.properties"

    @property
    def command(self) -> list[str]:
        return node_command(str(self._properties))

    def format_for(self, theirs: Node) -> None:
        """Write the properties and format the directory for a cluster of Kafka's."""
        broker = broker_properties(self.node_id, self, Kafka().defaults(theirs))
        given = {**broker, **SHORT_SESSIONS}
        self._properties.parent.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(render(given, "A broker of a cluster of Kafka's."))
        format_properties(self._properties, cluster_id_of(theirs.data))


def broker_properties(
    node_id: int, node: "Node | OurBroker", controller: dict[str, str]
) -> dict[str, str]:
    """The properties of a broker without a controller."""
    quorum = "controller.quorum.bootstrap.servers"
    return {
        "node.id": str(node_id),
        "process.roles": "broker",
        "listeners": f"PLAINTEXT://{node.address}",
        "controller.listener.names": "CONTROLLER",
        quorum: controller[quorum],
        "log.dirs": str(node.data),
    }


def cluster_id_of(directory: Path) -> str:
    return parse((directory / "meta.properties").read_text())["cluster.id"]


def format_broker(node: Node, cluster_id: str) -> None:
    """Format a directory for Kafka, without a JVM."""
    properties = node.directory / "format.properties"
    properties.write_text(render(node.settings, "A broker of a cluster of Headrace."))
    format_properties(properties, cluster_id)


def format_properties(properties: Path, cluster_id: str) -> None:
    assert main(["format", "--config", str(properties), "--cluster-id", cluster_id]) == 0


# The topic


def create_topic(everyone: Addressed, replicas: list[list[int]]) -> None:
    create(everyone, NewTopic(TOPIC, len(replicas), replica_assignment=replicas))


def write(everyone: Addressed) -> None:
    for partition in PARTITIONS:
        produce(everyone, TOPIC, numbered(COUNT), partition=partition, acks="all")


def assert_complete(everyone: Addressed, *, writes: int) -> None:
    expected = [record.value for record in numbered(COUNT)] * writes
    for partition in PARTITIONS:
        assert read_values(everyone, TOPIC, partition=partition) == expected


def wait_for(
    everyone: Addressed, expect: Callable[[list[PartitionDescription]], bool]
) -> list[PartitionDescription]:
    """Wait until the topic's partitions are as expected, for a broker that is asked."""
    return eventually(lambda: described(everyone), expect=expect)


def described(everyone: Addressed) -> list[PartitionDescription]:
    with Admin(everyone.address) as admin:
        found, _ = admin.topics.describe([TOPIC])
    return [part for topic in found for part in topic.partitions]


def leaders(parts: list[PartitionDescription]) -> list[int | None]:
    return [part.leader for part in parts]


def are_in_sync(parts: list[PartitionDescription]) -> bool:
    return bool(parts) and not any(part.is_under_replicated for part in parts)


def isr_without(parts: list[PartitionDescription], node: int) -> bool:
    return not any(node in part.isr for part in parts)


def elect(everyone: Addressed) -> None:
    with Admin(everyone.address) as admin:
        admin.elections.hold(ElectionType.PREFERRED)


def assert_same_bytes(*directories: Path) -> None:
    for partition in PARTITIONS:
        first, *others = (
            b"".join(log.read_bytes() for log in sorted(found.glob("*.log")))
            for found in (directory / f"{TOPIC}-{partition}" for directory in directories)
        )
        assert first
        assert all(other == first for other in others)
