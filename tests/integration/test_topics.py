"""Topics as an administrator sees them: created, described, grown, deleted, refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import NewPartitions, NewTopic
from kio.schema.errors import ErrorCode

from tests.clients.librdkafka import (
    SECONDS_MAX,
    admin,
    create,
    create_topic,
    delete_topic,
    numbered,
    produce,
    producer,
    read_values,
    topic_configs,
    try_produce,
    unique_name,
    values,
    watermarks,
)
from tests.clients.wire import SECOND, Connection
from tests.processes.nodes import Node, eventually

StartNode = Callable[..., Node]


def test_a_topic_is_created_described_and_deleted(node: Node) -> None:
    """LOG-5: partitions, replicas and configs as asked for; then it is gone."""
    topic = create_topic(node, partitions=4, retention_ms=86_400_000)
    client = admin(node)
    described = client.describe_topics(TopicCollection([topic]))[topic].result(SECONDS_MAX)
    assert [partition.id for partition in described.partitions] == [0, 1, 2, 3]
    for partition in described.partitions:
        assert [replica.id for replica in partition.replicas] == [partition.leader.id]
        assert [replica.id for replica in partition.isr] == [partition.leader.id]
    assert topic_configs(node, topic)["retention.ms"].value == "86400000"
    delete_topic(node, topic)
    eventually(lambda: topic not in client.list_topics(timeout=SECONDS_MAX).topics)


def test_a_deleted_topic_can_be_created_again_empty(node: Node) -> None:
    """LOG-5: the new topic has neither records nor offsets of the old one."""
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    delete_topic(node, topic)
    create_topic(node, name=topic)
    assert watermarks(node, topic) == (0, 0)
    assert produce(node, topic, values("first"))[0].offset() == 0


def test_defaults_come_from_the_broker(start_node: StartNode) -> None:
    """LOG-5: -1 partitions and replicas leave the number to the broker."""
    node = start_node(num_partitions=5)
    topic = unique_name()
    create(node, NewTopic(topic, -1, -1))
    assert partition_count(node, topic) == 5


def test_validate_only_creates_nothing(node: Node) -> None:
    """LOG-5: a dry run answers as the real one would."""
    topic = unique_name()
    create(node, NewTopic(topic, 3, 1), validate_only=True)
    assert topic not in admin(node).list_topics(timeout=SECONDS_MAX).topics
    with pytest.raises(KafkaException) as refused:
        create(node, NewTopic("no spaces please", 3, 1), validate_only=True)
    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("with space", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("no-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("too-many-replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("no-such-config", 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad", 1, 1, config={"cleanup.policy": "burn"}), KafkaError.INVALID_CONFIG),
        (NewTopic("on-9", 1, replica_assignment=[[9]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value.topic[:20] if isinstance(value, NewTopic) else "",
)
def test_invalid_topics_are_refused_with_kafkas_code(
    node: Node, topic: NewTopic, code: int
) -> None:
    """LOG-5: names, counts, replicas and configs are checked before anything is made."""
    with pytest.raises(KafkaException) as refused:
        create(node, topic)
    assert refused.value.args[0].code() == code


def test_a_second_topic_of_the_same_name_is_refused(node: Node, topic: str) -> None:
    """LOG-5"""
    with pytest.raises(KafkaException) as refused:
        create_topic(node, name=topic)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_names_that_collide_in_metrics_are_refused(node: Node) -> None:
    """LOG-5: a dot and an underscore look the same in a metric's name."""
    create_topic(node, name="sensor.kitchen")
    with pytest.raises(KafkaException) as refused:
        create_topic(node, name="sensor_kitchen")
    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


def test_replicas_may_be_assigned_by_hand(node: Node) -> None:
    """LOG-5: one node can only give itself."""
    topic = unique_name()
    client = admin(node)
    (broker,) = client.list_topics(timeout=SECONDS_MAX).brokers
    create(node, NewTopic(topic, 2, replica_assignment=[[broker], [broker]]))
    assert partition_count(node, topic) == 2


def test_partitions_are_added_and_never_taken_away(node: Node) -> None:
    """LOG-5, LOG-7: old partitions keep their records, new ones are usable at once."""
    topic = create_topic(node, partitions=2)
    produce(node, topic, values("old"))
    client = admin(node)
    client.create_partitions([NewPartitions(topic, 4)])[topic].result(SECONDS_MAX)
    eventually(lambda: partition_count(node, topic) == 4)
    produce(node, topic, values("new"), partition=3)
    assert read_values(node, topic) == [b"old"]
    assert read_values(node, topic, partition=3) == [b"new"]
    with pytest.raises(KafkaException) as refused:
        client.create_partitions([NewPartitions(topic, 3)])[topic].result(SECONDS_MAX)
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_deleting_a_missing_topic_is_refused(node: Node) -> None:
    """LOG-5"""
    with pytest.raises(KafkaException) as refused:
        delete_topic(node, unique_name())
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topics_are_deleted_by_id(node: Node, topic: str) -> None:
    """LOG-5: an id names one life of a topic, a name may come back."""
    with Connection(node.port) as connection:
        (described,) = connection.call("metadata", 12, **metadata_of(topic)).topics
        request = {"topics": [{"name": None, "topic_id": described.topic_id}], "timeout": SECOND}
        (deleted,) = connection.call("delete_topics", 6, **request).responses
        assert (deleted.error_code, deleted.name) == (ErrorCode.none, topic)
        (again,) = connection.call("delete_topics", 6, **request).responses
    assert again.error_code == ErrorCode.unknown_topic_id


def test_a_topic_appears_on_first_use(start_node: StartNode) -> None:
    """LOG-6: with auto-create on, a producer needs no set-up."""
    node = start_node(auto_create_topics_enable="true", num_partitions=3)
    topic = unique_name()
    produce(node, topic, values("first"))
    assert read_values(node, topic) == [b"first"]
    assert partition_count(node, topic) == 3


@pytest.mark.parametrize("version", [0, 4, 12])
def test_a_metadata_request_creates_a_missing_topic(node: Node, version: int) -> None:
    """LOG-6: the first answer does not wait for it, and has UNKNOWN_TOPIC_OR_PARTITION."""
    topic = unique_name()
    fields = {
        "topics": [{"name": topic, "topic_id": None}],
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    with Connection(node.port) as connection:
        (first,) = connection.call("metadata", version, **fields).topics
        assert first.error_code == ErrorCode.unknown_topic_or_partition
        created = eventually(
            lambda: connection.call("metadata", version, **fields).topics[0],
            expect=lambda answer: answer.error_code == ErrorCode.none,
        )
    assert len(created.partitions) == 1


def test_without_auto_create_an_unknown_topic_is_refused(start_node: StartNode) -> None:
    """LOG-6: and nothing appears."""
    node = start_node(auto_create_topics_enable="false")
    topic = unique_name()
    client = producer(node, message_timeout_ms=3_000, topic_metadata_propagation_max_ms=100)
    ((error, _message),) = try_produce(client, topic, values("lost"), partition=-1)
    assert error is not None
    assert error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert topic not in admin(node).list_topics(timeout=SECONDS_MAX).topics


def test_one_node_holds_partitions_of_many_topics(node: Node) -> None:
    """LOG-7(b), PRD-1: one producer writes to all of them."""
    topics = [create_topic(node, partitions=2) for _ in range(8)]
    client = producer(node)
    for topic in topics:
        for partition in range(2):
            client.produce(topic, topic.encode(), partition=partition)
    assert client.flush(SECONDS_MAX) == 0
    for topic in topics:
        assert read_values(node, topic, partition=1) == [topic.encode()]


def test_a_partition_is_a_directory_of_segments(node: Node) -> None:
    """LOG-12: named topic-partition, with files named after their first offset."""
    topic = create_topic(node, partitions=2, segment_bytes=1_048_576)
    produce(node, topic, numbered(3_000, size=1_000), partition=1, batch_size=100_000)
    directory = node.data / f"{topic}-1"
    bases = [int(path.stem) for path in sorted(directory.glob("*.log"))]
    assert len(bases) >= 3
    assert bases[0] == 0
    assert all(len(path.stem) == 20 for path in directory.glob("*.log"))
    assert {path.suffix for path in directory.iterdir()} >= {".log", ".index", ".timeindex"}
    assert all(size <= 1_048_576 for size in sizes(directory))


def test_deleting_a_topic_frees_its_disk_space(node: Node) -> None:
    """LOG-5, LOG-12: the directory goes after file.delete.delay.ms."""
    topic = create_topic(node, file_delete_delay_ms=100)
    produce(node, topic, numbered(100))
    assert (node.data / f"{topic}-0").is_dir()
    delete_topic(node, topic)
    eventually(lambda: not list(node.data.glob(f"{topic}-*")))


def metadata_of(topic: str) -> dict[str, object]:
    return {
        "topics": [{"name": topic, "topic_id": None}],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }


def partition_count(node: Node, topic: str) -> int:
    client = admin(node)
    return len(client.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions)


def sizes(directory: Path) -> list[int]:
    return [path.stat().st_size for path in directory.glob("*.log")]
