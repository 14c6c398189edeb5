"""Kafka's own tools against three nodes of Headrace."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.cli.cluster_parent import node_command
from headrace.cli.main import main
from headrace.runtime.ports import free_port
from headrace.settings.properties import parse, render
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import HOST, NodeProcess
from tests.clients.librdkafka import (
    consumer,
    create_topic,
    numbered,
    produce,
    producer,
    read_values,
    topic_configs,
)
from tests.processes.kafka import TOOL_FLAGS, KafkaRelease
from tests.processes.kafka_tools import KafkaTools, running_tools
from tests.processes.nodes import eventually

NODE_IDS = [1, 2, 3]
VERIFIED = 2_000
PREFERRED = ("--election-type", "preferred")


class Tooled(NamedTuple):
    """A cluster, and Kafka's tools for it."""

    cluster: ClusterProcess
    tools: KafkaTools

    @property
    def address(self) -> str:
        return self.cluster.bootstrap_servers

    @property
    def brokers(self) -> tuple[str, str]:
        return "--bootstrap-server", self.address

    @property
    def controllers(self) -> tuple[str, str]:
        given = self.properties()["controller.quorum.bootstrap.servers"]
        return "--bootstrap-controller", given

    def properties(self) -> dict[str, str]:
        """The properties of the first node."""
        return parse(self.cluster.node(1).data_dir.with_suffix(".properties").read_text())

    def run(self, script: str, *arguments: str) -> str:
        return self.tools.run(script, *self.brokers, *arguments)

    def describe(self, topic: str, *options: str) -> list[dict[str, str]]:
        """The partitions as kafka-topics shows them."""
        shown = self.run("kafka-topics", "--describe", "--topic", topic, *options)
        lines = [line for line in shown.splitlines() if "\tPartition: " in line]
        return [dict(re.findall(r"(\w+): ([^\t]*)", line)) for line in lines]


@pytest.fixture(scope="module")
def tooled(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tooled]:
    """All tests of this module share the cluster, and leave all nodes running."""
    directory = tmp_path_factory.mktemp("tooled")
    with ClusterProcess(directory) as cluster, running_tools(kafka_release) as tools:
        yield Tooled(cluster, tools)


def test_topics_are_created_described_altered_and_deleted(tooled: Tooled) -> None:
    """OPS-1, REP-1: each partition on all three nodes, with leaders on all of them."""
    given = ("--partitions", "3", "--replication-factor", "3", "--config", "retention.ms=86400000")
    tooled.run("kafka-topics", "--create", "--topic", "tooled", *given)
    partitions = tooled.describe("tooled")
    assert sorted(one["Leader"] for one in partitions) == ["1", "2", "3"]
    assert all(numbers(one["Replicas"]) == numbers(one["Isr"]) == NODE_IDS for one in partitions)
    assert tooled.describe("tooled", "--under-replicated-partitions") == []
    tooled.run("kafka-topics", "--alter", "--topic", "tooled", "--partitions", "5")
    assert [one["Partition"] for one in tooled.describe("tooled")] == ["0", "1", "2", "3", "4"]
    tooled.run("kafka-topics", "--delete", "--topic", "tooled")
    eventually(lambda: "tooled" not in tooled.run("kafka-topics", "--list").split())


def numbers(listed: str) -> list[int]:
    return sorted(int(number) for number in listed.split(","))


def test_configs_are_changed_by_brokers_and_by_controllers(tooled: Tooled) -> None:
    """RET-1: of a topic, of one broker and of all of them."""
    topic = create_topic(tooled, replicas=3)
    for address, value in ((tooled.brokers, "1000000"), (tooled.controllers, "2000000")):
        entity = ("--entity-type", "topics", "--entity-name", topic)
        change = ("--add-config", f"retention.ms={value}")
        tooled.tools.run("kafka-configs", *address, "--alter", *entity, *change)
        wait_for_retention(tooled, topic, value)
    brokers = ("--entity-type", "brokers")
    for named, value in (("--entity-default", "2"), ("--entity-name=2", "3")):
        change = ("--add-config", f"log.cleaner.threads={value}")
        tooled.run("kafka-configs", "--alter", *brokers, named, *change)
        shown = eventually(
            partial(tooled.run, "kafka-configs", "--describe", *brokers, named),
            expect=lambda found: "log.cleaner.threads" in found,
        )
        assert f"log.cleaner.threads={value}" in shown
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2" in shown


def wait_for_retention(tooled: Tooled, topic: str, value: str) -> None:
    eventually(lambda: topic_configs(tooled, topic)["retention.ms"].value == value)


@pytest.mark.parametrize("where", ["brokers", "controllers"])
def test_the_quorum_is_described(tooled: Tooled, where: str) -> None:
    """REP-14: status and replication, by any broker and by the controllers themselves."""
    address = getattr(tooled, where)
    status = tooled.tools.run("kafka-metadata-quorum", *address, "describe", "--status")
    assert re.search(r"^LeaderId: +[123]$", status, re.MULTILINE)
    assert re.search(r"^MaxFollowerLag: +\d+$", status, re.MULTILINE)
    voters = json.loads(status.partition("CurrentVoters:")[2].splitlines()[0])
    assert [voter["id"] for voter in voters] == NODE_IDS
    assert all(voter["endpoints"][0].startswith("CONTROLLER://") for voter in voters)
    replication = tooled.tools.run("kafka-metadata-quorum", *address, "describe", "--replication")
    roles = sorted(line.split()[-1] for line in replication.splitlines()[1:] if line)
    assert roles == ["Follower", "Follower", "Leader"]


@pytest.mark.parametrize("where", ["brokers", "controllers"])
def test_the_cluster_and_its_features_are_described(tooled: Tooled, where: str) -> None:
    address = getattr(tooled, where)
    features = tooled.tools.run("kafka-features", *address, "describe")
    levels = dict(re.findall(r"Feature: (\S+).*FinalizedVersionLevel: (\S+)", features))
    assert (levels["metadata.version"], levels["kraft.version"]) == ("4.0-IV3", "1")
    cluster_id = tooled.tools.run("kafka-cluster", "cluster-id", *address)
    identity = parse((tooled.cluster.node(1).data_dir / "meta.properties").read_text())
    assert cluster_id.strip() == f"Cluster ID: {identity['cluster.id']}"
    endpoints = tooled.tools.run("kafka-cluster", "list-endpoints", *address)
    assert [int(line.split()[0]) for line in endpoints.splitlines()[1:]] == NODE_IDS
    assert endpoints.count(where.removesuffix("s")) == 3


def test_a_stopped_nodes_partitions_are_shown_and_its_leaders_return(
    tooled: Tooled, tmp_path: Path
) -> None:
    """REP-5, REP-13: under-replicated partitions, and elections of preferred leaders."""
    topic = create_topic(tooled, partitions=2, replicas=3)
    stopped = tooled.cluster.leader_of(topic, 0)
    stopped.stop()
    under = tooled.describe(topic, "--under-replicated-partitions")
    assert [one["Partition"] for one in under] == ["0", "1"]
    assert str(stopped.id) not in [one["Leader"] for one in under]
    assert len(tooled.describe(topic, "--at-min-isr-partitions")) == 2
    stopped.start()
    tooled.cluster.wait_until_in_sync()
    wanted = tmp_path / "wanted.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0}]}))
    shown = tooled.run("kafka-leader-election", *PREFERRED, "--path-to-json-file", str(wanted))
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in shown
    eventually(
        lambda: tooled.describe(topic)[0]["Leader"], expect=lambda leader: leader == str(stopped.id)
    )
    tooled.run("kafka-leader-election", *PREFERRED, "--all-topic-partitions")
    assert tooled.run("kafka-leader-election", *PREFERRED, "--all-topic-partitions").strip() == ""


def test_log_directories_of_all_brokers_are_listed(tooled: Tooled) -> None:
    """LOG-12: the sizes are those of the files."""
    topic = create_topic(tooled, replicas=3)
    produce(tooled, topic, numbered(1_000, size=100), acks="all")
    stored = (
        (tooled.cluster.leader_of(topic).data_dir / f"{topic}-0" / f"{0:020}.log").stat().st_size
    )
    shown = tooled.run("kafka-log-dirs", "--describe", "--topic-list", topic)
    brokers = json.loads(shown.splitlines()[-1])["brokers"]
    sizes = {one["broker"]: one["logDirs"][0]["partitions"][0]["size"] for one in brokers}
    assert sizes == dict.fromkeys(NODE_IDS, stored)


def test_groups_of_all_kinds_are_listed_and_described(tooled: Tooled) -> None:
    """CON-6, RMQ-1"""
    topic = create_topic(tooled, replicas=3)
    produce(tooled, topic, numbered(10))
    kinds = {"classic-group": "classic", "consumer-group": "consumer"}
    for group, protocol in kinds.items():
        options = {"group_protocol": protocol, "auto_offset_reset": "earliest"}
        with consumer(tooled, group_id=group, **options) as client:
            client.subscribe([topic])
            eventually(partial(client.poll, 0.1))
            client.commit(asynchronous=False)
        shown = tooled.run("kafka-consumer-groups", "--describe", "--group", group)
        assert re.search(rf"^{group} +{topic} +0 +\d+ +10 ", shown, re.MULTILINE)
    share = ("--group", "share-group", "--topic", topic, "--reset-offsets", "--to-earliest")
    tooled.run("kafka-share-groups", *share, "--execute")
    offsets = tooled.run("kafka-share-groups", "--describe", "--group", "share-group", "--offsets")
    assert re.search(rf"^share-group +{topic} +0 +0 ", offsets, re.MULTILINE)
    listed = tooled.run("kafka-groups", "--list")
    for group, kind in {**kinds, "share-group": "share"}.items():
        assert re.search(rf"^{group} +{kind.title()} ", listed, re.MULTILINE)
    assert set(kinds) <= set(tooled.run("kafka-consumer-groups", "--list").split())
    assert "share-group" in tooled.run("kafka-share-groups", "--list").split()


def test_transactions_are_listed_and_hanging_ones_are_looked_for(tooled: Tooled) -> None:
    """DEL-5: also on brokers that only follow."""
    topic = create_topic(tooled, replicas=3)
    client = producer(tooled, transactional_id="tooled-transaction")
    client.init_transactions()
    client.begin_transaction()
    client.produce(topic, b"open", partition=0)
    client.flush()
    shown = tooled.run("kafka-transactions", "describe", "--transactional-id", "tooled-transaction")
    assert re.search(rf"tooled-transaction.*Ongoing.*{topic}-0", shown)
    for node in NODE_IDS:
        hanging = tooled.run("kafka-transactions", "find-hanging", "--broker-id", str(node))
        assert topic not in hanging
    client.abort_transaction()
    assert "tooled-transaction" in tooled.run("kafka-transactions", "list")


def test_every_broker_shows_its_api_versions(tooled: Tooled) -> None:
    shown = tooled.run("kafka-broker-api-versions")
    assert sorted(int(one) for one in re.findall(r"\(id: (\d) rack", shown)) == NODE_IDS
    assert len(re.findall(r"Produce\(0\): .*usable: 13", shown)) == 3


# Tools that run for a while


def test_the_replicas_are_equal(
    kafka_release: KafkaRelease, tooled: Tooled, tmp_path: Path
) -> None:
    """REP-1: kafka-replica-verification reads all replicas from their starts, batch by batch."""
    topic = create_topic(tooled, partitions=2, replicas=3)
    for partition in range(2):
        produce(tooled, topic, numbered(500, size=100), partition=partition, batch_size=2_000)
    options = ("--broker-list", tooled.address, "--topics-include", topic, "--time", "-2")
    intervals = ("--report-interval-ms", "200", "--max-wait-ms", "50")
    log = tmp_path / "verification.log"
    with running(kafka_release, log, "kafka-replica-verification", *options, *intervals):
        shown = eventually(log.read_text, expect=lambda text: "at offset 500 among" in text)
    assert re.search(rf"max lag is 0 for partition {topic}-\d at offset 500 among 2", shown)
    assert "match" not in shown
    assert "unmatched" not in shown


def test_verifiable_clients_lose_and_repeat_nothing_when_leaders_die(
    kafka_release: KafkaRelease, tooled: Tooled, tmp_path: Path
) -> None:
    """REP-5, REP-10: by Kafka's own producer and consumer; also the group's coordinator dies."""
    topic = create_topic(tooled, replicas=3)
    patient = tmp_path / "producer.properties"
    # The tool retries nothing of itself.
    patient.write_text("retries=1000\nenable.idempotence=true\n")
    given = (*tooled.brokers, "--topic", topic, "--max-messages", str(VERIFIED))
    sending = (*given, "--throughput", "500", "--command-config", str(patient))
    reading = (*given, "--group-id", "verifying", "--verbose")
    sent, received = tmp_path / "sent.json", tmp_path / "received.json"
    with (
        running(kafka_release, received, "kafka-verifiable-consumer", *reading) as reader,
        running(kafka_release, sent, "kafka-verifiable-producer", *sending) as writer,
    ):
        for acknowledged in (VERIFIED // 4, VERIFIED // 2):
            wait_for_acknowledgements(sent, acknowledged)
            leader = tooled.cluster.leader_of(topic)
            leader.kill()
            leader.start()
            tooled.cluster.wait_until_in_sync()
        assert writer.wait(60) == 0
        assert reader.wait(60) == 0
    summary = events(sent, "tool_data")[0]
    assert (summary["sent"], summary["acked"]) == (VERIFIED, VERIFIED)
    wanted = [str(number) for number in range(VERIFIED)]
    assert read_values(tooled, topic) == [text.encode() for text in wanted]
    assert {one["value"] for one in events(received, "record_data")} == set(wanted)


def wait_for_acknowledgements(log: Path, count: int) -> None:
    eventually(lambda: log.read_text().count("producer_send_success") >= count)


def events(log: Path, name: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["name"] == name]


@contextmanager
def running(
    release: KafkaRelease, log: Path, script: str, *arguments: str
) -> "Iterator[subprocess.Popen[bytes]]":
    """A tool in a JVM of its own, until it is no longer needed."""
    command = release.command(script, *arguments, flags=(*TOOL_FLAGS, *release.sooner))
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


# A fourth controller


def test_a_controller_is_added_and_removed(tooled: Tooled, tmp_path: Path) -> None:
    """REP-14: kafka-metadata-quorum adds a formatted controller that follows, and removes it."""
    properties = tmp_path / "node-4.properties"
    port, directory = free_port(HOST), tmp_path / "node-4"
    first = tooled.properties()
    given = {
        "node.id": "4",
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": first["controller.quorum.bootstrap.servers"],
        "log.dirs": str(directory),
    }
    properties.write_text(render(given, "The fourth node."))
    cluster_id = parse(Path(first["log.dirs"], "meta.properties").read_text())["cluster.id"]
    options = ["--cluster-id", cluster_id, "--no-initial-controllers"]
    assert main(["format", "--config", str(properties), *options]) == 0
    directory_id = parse((directory / "meta.properties").read_text())["directory.id"]
    node = NodeProcess("node-4", tmp_path / "node-4.log")
    node.launch(node_command(str(properties)))
    try:
        # As in Kafka, only a controller that has caught up once may be added.
        eventually(lambda: 4 in caught_up(tooled))
        assert roles(tooled)[4] == "Observer"
        add = (*tooled.brokers, "--command-config", str(properties), "add-controller")
        tooled.tools.run("kafka-metadata-quorum", *add)
        eventually(lambda: roles(tooled)[4], expect=lambda role: role == "Follower")
        again = tooled.tools.try_run("kafka-metadata-quorum", *add)
        assert "DuplicateVoterException" in again.text
        create_topic(tooled, replicas=3)
        named = ("--controller-id", "4", "--controller-directory-id", directory_id)
        remove = (*tooled.controllers, "remove-controller", *named)
        tooled.tools.run("kafka-metadata-quorum", *remove)
        eventually(lambda: roles(tooled).get(4), expect=lambda role: role != "Follower")
        again = tooled.tools.try_run("kafka-metadata-quorum", *remove)
        assert "VoterNotFoundException" in again.text
        assert sorted(set(roles(tooled)) - {4}) == NODE_IDS
    finally:
        node.kill()


def roles(tooled: Tooled) -> dict[int, str]:
    """The roles of the quorum's nodes."""
    return {int(row[0]): row[-1] for row in replication(tooled)}


def caught_up(tooled: Tooled) -> set[int]:
    """The nodes that have once had the whole log."""
    return {int(row[0]) for row in replication(tooled) if int(row[5]) > 0}


def replication(tooled: Tooled) -> list[list[str]]:
    shown = tooled.run("kafka-metadata-quorum", "describe", "--replication")
    return [line.split() for line in shown.splitlines()[1:] if line]
