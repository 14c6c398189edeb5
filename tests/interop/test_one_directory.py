"""A data directory moves between Headrace and Apache Kafka, and nothing in it changes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    SECONDS_MAX,
    Sent,
    admin,
    consumer,
    create_topic,
    delete_topic,
    numbered,
    produce,
    producer,
    read,
    topic_configs,
    values,
    watermarks,
)
from tests.clients.wire import Connection
from tests.interop.conftest import Pair
from tests.processes.nodes import Node

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIGS = {"retention.ms": "864000000", "segment.bytes": "1048576", "max.message.bytes": "2000000"}


class TopicState(NamedTuple):
    """Everything of a topic that a client can see."""

    watermarks: list[tuple[int, int]]
    records: list[list[tuple[object, ...]]]
    configs: dict[str, str | None]


def state_of(node: Node, topic: str) -> TopicState:
    client = admin(node)
    partitions = sorted(client.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions)
    configs = topic_configs(node, topic)
    return TopicState(
        [watermarks(node, topic, partition) for partition in partitions],
        [[seen(message) for message in read(node, topic, partition=p)] for p in partitions],
        {name: configs[name].value for name in CONFIGS},
    )


def seen(message: object) -> tuple[object, ...]:
    names = ("offset", "timestamp", "key", "value", "headers")
    return tuple(getattr(message, name)() for name in names)


def fill(node: Node, topic: str) -> None:
    """Records of every kind: codecs, headers, nulls, large ones, several segments."""
    for number, codec in enumerate(CODECS):
        records = [
            Sent(b"value %d" % n, b"key %d" % n, (("h", b"%d" % n),), AN_HOUR_AGO + n)
            for n in range(200)
        ]
        produce(node, topic, records, partition=number % 3, compression_type=codec)
    produce(node, topic, [Sent(None, b"null"), Sent(b"", b""), Sent(b"x" * 900_000)], partition=1)
    produce(node, topic, numbered(3_000, size=1_000), partition=2, compression_type="none")


@pytest.mark.parametrize("ending", [Node.stop, Node.kill], ids=["stop", "kill"])
def test_kafka_and_headrace_serve_each_others_logs(
    pair: Pair, ending: Callable[[Node], int]
) -> None:
    """LOG-11, LOG-12: records, offsets, timestamps and configs, there and back again."""
    ours, theirs = pair
    ours.start()
    topic = create_topic(ours, partitions=3, **underscored(CONFIGS))
    fill(ours, topic)
    written = state_of(ours, topic)
    ending(ours)

    theirs.start()
    assert state_of(theirs, topic) == written
    produce(theirs, topic, values("by kafka"), partition=0)
    made_by_kafka = create_topic(theirs, partitions=2, name="made-by-kafka", retention_ms=1_000_000)
    produce(theirs, made_by_kafka, numbered(100), partition=1, compression_type="lz4")
    states = {name: state_of(theirs, name) for name in (topic, made_by_kafka)}
    ending(theirs)

    ours.start()
    assert {name: state_of(ours, name) for name in states} == states
    assert read(ours, topic)[-1].value() == b"by kafka"
    end = watermarks(ours, topic)[1]
    assert produce(ours, topic, values("by us again"))[0].offset() == end


def test_headrace_takes_over_from_kafka(pair: Pair) -> None:
    """LOG-11: a directory that Kafka made, with groups and transactions in it."""
    ours, theirs = pair
    theirs.start()
    topic = create_topic(theirs, partitions=3, **underscored(CONFIGS))
    fill(theirs, topic)
    write_transactions(theirs, topic)
    commit_offsets(theirs, topic)
    gone = create_topic(theirs, name="gone-before-we-came")
    delete_topic(theirs, gone)
    written = state_of(theirs, topic)
    theirs.stop()

    ours.start()
    assert state_of(ours, topic) == written
    listed = admin(ours).list_topics(timeout=SECONDS_MAX).topics
    assert gone not in listed
    assert "__consumer_offsets" in listed
    with pytest.raises(KafkaException) as refused:
        create_topic(ours, name=topic)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_topics_and_records_deleted_by_one_are_gone_for_the_other(pair: Pair) -> None:
    """LOG-5, LOG-13: topics and records."""
    ours, theirs = pair
    ours.start()
    kept, gone = create_topic(ours, name="kept"), create_topic(ours, name="gone")
    produce(ours, kept, numbered(100))
    delete_records(ours, kept, before=40)
    delete_topic(ours, gone)
    ours.stop()
    theirs.start()
    assert watermarks(theirs, kept) == (40, 100)
    assert gone not in admin(theirs).list_topics(timeout=SECONDS_MAX).topics
    delete_topic(theirs, kept)
    create_topic(theirs, name=gone, partitions=4)
    theirs.stop()
    ours.start()
    listed = admin(ours).list_topics(timeout=SECONDS_MAX).topics
    assert kept not in listed
    assert len(listed[gone].partitions) == 4


def test_an_idempotent_producer_continues_at_the_other_broker(pair: Pair) -> None:
    """PRD-15: producer ids handed out by one are never handed out by the other."""
    ours, theirs = pair
    given = []
    for node in (ours, theirs, ours):
        node.start()
        given.append(new_producer_id(node))
        node.stop()
    assert len(set(given)) == 3


def underscored(configs: dict[str, str]) -> dict[str, Any]:
    return {name.replace(".", "_"): value for name, value in configs.items()}


def delete_records(node: Node, topic: str, *, before: int) -> None:
    request = TopicPartition(topic, 0, before)
    client = admin(node)
    client.delete_records([request])[request].result(SECONDS_MAX)


def write_transactions(node: Node, topic: str) -> None:
    """One that is committed and one that is aborted, markers and all."""
    client = producer(node, transactional_id="interop")
    client.init_transactions(SECONDS_MAX)
    for commits in (True, False):
        client.begin_transaction()
        client.produce(topic, b"in a transaction", partition=0)
        client.flush(SECONDS_MAX)
        (client.commit_transaction if commits else client.abort_transaction)(SECONDS_MAX)


def commit_offsets(node: Node, topic: str) -> None:
    with consumer(node, group_id="interop") as client:
        place = TopicPartition(topic, 0, 7)
        client.assign([place])
        client.commit(offsets=[place], asynchronous=False)


def new_producer_id(node: Node) -> int:
    with Connection(node.port) as connection:
        return int(connection.new_producer().producer_id)
