"""Three nodes of Headrace and three of Apache Kafka by turns on the same directories."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Producer, TopicPartition

from headrace.cli.local_cluster import read_plan, write_properties
from headrace.client.admin import Admin
from headrace.client.configs import CLUSTER_DEFAULT
from headrace.client.descriptions import ConfigChange
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import as_properties
from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    SECONDS_MAX,
    Sent,
    consumer,
    create_topic,
    numbered,
    produce,
    producer,
    read_values,
    set_topic_config,
    topic_configs,
    until_end,
    values,
    watermarks,
)
from tests.interop.conftest import Everyone
from tests.processes.kafka import KafkaRelease
from tests.processes.kafka_clusters import KafkaTwins
from tests.processes.kafka_tools import KafkaTools, running_tools
from tests.processes.nodes import eventually

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PLAIN, IN_TRANSACTIONS, BY_KAFKA = "plain", "in-transactions", "made-by-kafka"
PARTITIONS = {PLAIN: 3, IN_TRANSACTIONS: 2, BY_KAFKA: 3}
CONFIGS = {"retention.ms": "864000000", "segment.bytes": "1048576", "min.insync.replicas": "1"}
GROUPS = GROUP, GROUP_IN_TRANSACTION, SHARE_GROUP = "workers", "transfer", "sharers"
NEWEST_LEVEL = 30  # 4.3-IV0
SEEN = ("offset", "timestamp", "key", "value", "headers", "leader_epoch")
COMMITTED = {"isolation_level": "read_committed"}
# Few partitions of internal topics, because each costs a start of Kafka some milliseconds.
SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4,
    # Neither may tidy up between two looks at the same directory.
    "log.retention.check.interval.ms": 3_600_000,
    # Snapshots of the metadata by both.
    "metadata.log.max.record.bytes.between.snapshots": 2_000,
}
DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
}

# The words with which kafka-dump-log reports what does not fit together.
COMPLAINTS = ("ismatch", "out of order", "rror", "xception", "isvalid: false")


class State(NamedTuple):
    """A cluster as its clients see it."""

    topics: dict[str, object]
    offsets: dict[str, object]
    configs: dict[str, object]
    transactions: list[object]


@pytest.fixture(scope="module")
def tools(kafka_release: KafkaRelease) -> Iterator[KafkaTools]:
    with running_tools(kafka_release) as found:
        yield found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path / "headrace", SETTINGS) as made:
        yield made


@pytest.fixture
def twins(
    kafka_release: KafkaRelease, cluster: ClusterProcess, tmp_path: Path
) -> Iterator[KafkaTwins]:
    """Kafka for the same directories; the test starts it."""
    made = KafkaTwins(cluster, tmp_path / "kafka")
    yield made
    made.kill()


def test_a_cluster_goes_to_kafka_and_back(
    cluster: ClusterProcess, twins: KafkaTwins, tools: KafkaTools
) -> None:
    """LOG-11, REP-1, REP-14: records, offsets, transactions and configs, of three nodes."""
    everyone = Everyone(cluster.bootstrap_servers)
    fill(everyone)
    share(everyone, tools, "--to-earliest")
    open_transaction = begin(everyone, "open", "before")
    before = state_of(everyone, (PLAIN, IN_TRANSACTIONS))
    cluster.stop()

    twins.start()
    cluster.wait_until_in_sync()
    assert state_of(everyone, (PLAIN, IN_TRANSACTIONS)) == before
    open_transaction.produce(IN_TRANSACTIONS, b"after", partition=0)
    open_transaction.commit_transaction(SECONDS_MAX)
    change(everyone)
    share(everyone, tools, "--to-latest")
    second = begin(everyone, "open", "at kafka")
    before = state_of(everyone, PARTITIONS)
    assert values_of(everyone, IN_TRANSACTIONS, 0)[1:3] == [b"before", b"after"]
    twins.stop()

    cluster.start()
    cluster.wait_until_in_sync()
    assert state_of(everyone, PARTITIONS) == before
    second.produce(IN_TRANSACTIONS, b"at headrace", partition=0)
    second.commit_transaction(SECONDS_MAX)
    assert values_of(everyone, IN_TRANSACTIONS, 0)[-2:] == [b"at kafka", b"at headrace"]
    for partition in range(PARTITIONS[BY_KAFKA]):
        produce(everyone, BY_KAFKA, values("by us again"), partition=partition)
    cluster.stop()
    assert_replicas_are_equal([node.data_dir for node in cluster.nodes])
    for node in cluster.nodes:
        assert len(list(node.data_dir.glob("__cluster_metadata-0/*.checkpoint"))) > 1
        assert_every_log_is_decoded(tools, node.data_dir)


def test_headrace_starts_on_directories_that_kafka_storage_formatted(
    tools: KafkaTools, tmp_path: Path
) -> None:
    """REP-14: the voters and levels of Kafka's own bootstrap records and snapshots."""
    cluster = ClusterProcess(tmp_path / "headrace", SETTINGS)
    plan = read_plan(str(tmp_path / "headrace" / "data"))
    assert plan is not None
    write_properties(plan, as_properties(SETTINGS))
    for node in plan.nodes:
        options = ("--cluster-id", plan.cluster_id, "--initial-controllers", plan.first_voters)
        tools.run("kafka-storage", "format", "--config", plan.properties_path(node), *options)
    with cluster:
        everyone = Everyone(cluster.bootstrap_servers)
        create_topic(everyone, name=PLAIN, replicas=3)
        produce(everyone, PLAIN, numbered(10), acks="all")
        with Admin(everyone.address) as client:
            described = client.nodes.describe()
    assert described.cluster_id == plan.cluster_id
    assert described.quorum is not None
    assert [one.id for one in described.quorum.replicas] == [1, 2, 3]
    levels = {one.name: one.finalized for one in described.features}
    assert (levels["metadata.version"], levels["kraft.version"]) == (NEWEST_LEVEL, 1)


def fill(everyone: Everyone) -> None:
    """Records of every kind, several segments, groups, transactions and dynamic settings."""
    configs = {name.replace(".", "_"): value for name, value in CONFIGS.items()}
    create_topic(everyone, name=PLAIN, partitions=PARTITIONS[PLAIN], replicas=3, **configs)
    create_topic(everyone, name=IN_TRANSACTIONS, partitions=PARTITIONS[IN_TRANSACTIONS], replicas=3)
    for number, codec in enumerate(CODECS):
        records = [
            Sent(b"value %d" % n, b"key %d" % n, (("h", b"%d" % n),), AN_HOUR_AGO + n)
            for n in range(200)
        ]
        produce(everyone, PLAIN, records, partition=number % 3, compression_type=codec)
    produce(everyone, PLAIN, [Sent(None, b"null"), Sent(b"", b""), Sent(b"x" * 900_000)])
    produce(everyone, PLAIN, numbered(3_000, size=1_000), partition=2, compression_type="none")
    produce(everyone, PLAIN, numbered(500), partition=1, enable_idempotence=True)
    write_transactions(everyone, "by us")
    commit(everyone, GROUP, 7)
    set_topic_config(everyone, PLAIN, "max.message.bytes", "2000000")
    set_broker_config(everyone, "log.cleaner.threads", "2")


def change(everyone: Everyone) -> None:
    """Write more of everything."""
    create_topic(everyone, name=BY_KAFKA, partitions=PARTITIONS[BY_KAFKA], replicas=3)
    for partition in range(PARTITIONS[BY_KAFKA]):
        produce(everyone, BY_KAFKA, numbered(100), partition=partition, compression_type="lz4")
    produce(everyone, PLAIN, numbered(1_500, size=1_000), partition=2, compression_type="none")
    write_transactions(everyone, "by kafka")
    commit(everyone, GROUP, 9)
    set_topic_config(everyone, PLAIN, "max.message.bytes", "3000000")
    set_broker_config(everyone, "log.cleaner.threads", "3")


def share(everyone: Everyone, tools: KafkaTools, place: str) -> None:
    """A share group with a place of its own, in a state of the share coordinator."""
    options = ("--group", SHARE_GROUP, "--topic", PLAIN, "--reset-offsets", place, "--execute")
    tools.run("kafka-share-groups", "--bootstrap-server", everyone.address, *options)


def begin(everyone: Everyone, name: str, text: str) -> Producer:
    """An open transaction, with a record that the cluster has."""
    client = producer(everyone, transactional_id=name, transaction_timeout_ms=600_000)
    client.init_transactions(SECONDS_MAX)
    client.begin_transaction()
    client.produce(IN_TRANSACTIONS, text.encode(), partition=0)
    assert client.flush(SECONDS_MAX) == 0
    return client


def write_transactions(everyone: Everyone, text: str) -> None:
    """One that is committed, with a group's offsets, and one that is aborted."""
    client = producer(everyone, transactional_id="interop")
    client.init_transactions(SECONDS_MAX)
    for commits in (True, False):
        client.begin_transaction()
        for partition in range(PARTITIONS[IN_TRANSACTIONS]):
            client.produce(IN_TRANSACTIONS, f"{text} {commits}".encode(), partition=partition)
        with consumer(everyone, group_id=GROUP_IN_TRANSACTION) as reader:
            end = watermarks(everyone, PLAIN, 0)[1] if commits else 1
            place = TopicPartition(PLAIN, 0, end)
            reader.assign([place])
            group = reader.consumer_group_metadata()
            client.send_offsets_to_transaction([place], group, SECONDS_MAX)
        (client.commit_transaction if commits else client.abort_transaction)(SECONDS_MAX)


def commit(everyone: Everyone, group: str, offset: int) -> None:
    with consumer(everyone, group_id=group) as client:
        places = [TopicPartition(PLAIN, n, offset + n) for n in range(PARTITIONS[PLAIN])]
        client.assign(places)
        client.commit(offsets=places, asynchronous=False)


def set_broker_config(everyone: Everyone, name: str, value: str) -> None:
    """A default for all brokers."""
    with Admin(everyone.address) as client:
        change = ConfigChange(name=name, operation="set", value=value)
        outcome = client.configs.alter("broker", CLUSTER_DEFAULT, [change])
    assert outcome.error is None


# The clients' view


def state_of(everyone: Everyone, topics: "dict[str, int] | tuple[str, ...]") -> State:
    return State(
        {name: topic_state(everyone, name) for name in topics},
        {name: offsets_of(everyone, name) for name in GROUPS},
        broker_configs(everyone, "log.cleaner.threads"),
        [transaction_state(everyone, name) for name in ("interop", "open")],
    )


def topic_state(everyone: Everyone, topic: str) -> object:
    configs = topic_configs(everyone, topic)
    return (
        records_of(everyone, topic, isolation_level="read_committed"),
        records_of(everyone, topic, isolation_level="read_uncommitted"),
        {name: configs[name].value for name in (*CONFIGS, "max.message.bytes")},
    )


def records_of(everyone: Everyone, topic: str, **options: str) -> list[object]:
    """Each partition with its watermarks and records, by one consumer, whose end takes a while."""
    found: list[object] = []
    with consumer(everyone, fetch_wait_max_ms=10, **options) as client:
        client.list_topics(topic, SECONDS_MAX)  # Sooner than the client asks for itself.
        for partition in range(PARTITIONS[topic]):
            place = TopicPartition(topic, partition, OFFSET_BEGINNING)
            client.assign([place])
            records = [tuple(getattr(one, name)() for name in SEEN) for one in until_end(client)]
            found.append((client.get_watermark_offsets(place, SECONDS_MAX), records))
    return found


def values_of(everyone: Everyone, topic: str, partition: int) -> list[bytes | None]:
    return read_values(everyone, topic, partition=partition, **COMMITTED)


def broker_configs(everyone: Everyone, name: str) -> dict[str, object]:
    """A setting of all brokers; each one has it a moment after the controller."""
    with Admin(everyone.address) as client:
        found = eventually(
            lambda: [
                entry.value
                for node in ("1", "2", "3")
                for entry in client.configs.describe("broker", node)
                if entry.name == name
            ],
            expect=lambda seen: len(set(seen)) == 1,
        )
    return {name: found[0]}


def offsets_of(everyone: Everyone, group: str) -> object:
    with Admin(everyone.address) as client:
        return client.groups.committed(group)


def transaction_state(everyone: Everyone, name: str) -> object:
    """A transactional id, with its state when the markers of its last transaction are written."""
    with Admin(everyone.address) as client:
        found = eventually(
            lambda: client.transactions.describe(name),
            expect=lambda described: not described.state.startswith("Prepare"),
        )
    return found.state, found.producer_id, found.producer_epoch


# The disks


def assert_replicas_are_equal(directories: list[Path]) -> None:
    """Every partition has the same bytes on all nodes, wherever its segments begin."""
    first, *others = (contents(directory) for directory in directories)
    assert len(first) > sum(PARTITIONS.values())
    for other in others:
        assert other.keys() == first.keys()
        assert [name for name in first if first[name] != other[name]] == []


def contents(directory: Path) -> dict[str, bytes]:
    """The records of each partition."""
    partitions = sorted(path for path in directory.iterdir() if path.is_dir())
    return {
        path.name: b"".join(log.read_bytes() for log in sorted(path.glob("*.log")))
        for path in partitions
        if not path.name.startswith("__cluster_metadata")
    }


def assert_every_log_is_decoded(tools: KafkaTools, directory: Path) -> None:
    """kafka-dump-log reads every file, and finds nothing wrong."""
    for pattern in ("*.log", "*.index", "*.timeindex", "*.snapshot", "*.checkpoint"):
        by_decoder: dict[str, list[Path]] = {}
        for path in sorted(directory.glob(f"*-*/{pattern}")):
            topic = path.parent.name.rpartition("-")[0]
            is_decoded = pattern in ("*.log", "*.checkpoint")
            decoder = DECODERS.get(topic, "--print-data-log") if is_decoded else ""
            by_decoder.setdefault(decoder, []).append(path)
        for decoder, paths in by_decoder.items():
            options = [decoder] if decoder else []
            shown = tools.run("kafka-dump-log", *options, "--files", ",".join(map(str, paths)))
            for word in COMPLAINTS:
                assert word not in shown, shown[: shown.index(word) + 200][-1_000:]
            # The tool begins to count at -1 in each segment.
            gaps = re.findall(r"(\d+) is followed by (\d+)", shown.replace("-1 is followed", ""))
            assert gaps == []
