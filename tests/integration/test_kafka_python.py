"""kafka-python: pure Python, a protocol implementation of its own."""

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from tests.clients.librdkafka import AN_HOUR_AGO, SECONDS_MAX, unique_name
from tests.processes.nodes import Node, eventually


@pytest.fixture
def producer(node: Node) -> Iterator[KafkaProducer]:
    client = KafkaProducer(bootstrap_servers=node.address)
    yield client
    client.close()


@pytest.fixture
def admin(node: Node) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=node.address)
    yield client
    client.close()


@pytest.fixture
def consumer(node: Node) -> Iterator[KafkaConsumer]:
    client = KafkaConsumer(bootstrap_servers=node.address, group_id=None)
    yield client
    client.close()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_round_trip(
    node: Node, topic: str, consumer: KafkaConsumer, codec: str | None
) -> None:
    """OPS-1, LOG-1, LOG-16"""
    client = KafkaProducer(bootstrap_servers=node.address, compression_type=codec, linger_ms=20)
    headers = [("h", b"1"), ("h", b"2")]
    try:
        for number in range(100):
            client.send(topic, b"%d" % number, b"key", headers, 0, AN_HOUR_AGO + number)
        client.send(topic, None, b"null", partition=0)
        client.flush(SECONDS_MAX)
    finally:
        client.close()
    records = everything(consumer, topic)
    assert [record.value for record in records[:-1]] == [b"%d" % n for n in range(100)]
    assert {tuple(map(tuple, record.headers)) for record in records[:-1]} == {tuple(headers)}
    assert [record.timestamp for record in records[:-1]] == [AN_HOUR_AGO + n for n in range(100)]
    assert (records[-1].key, records[-1].value) == (b"null", None)


def test_seeks_in_the_log(topic: str, producer: KafkaProducer, consumer: KafkaConsumer) -> None:
    """LOG-13(b): seek, start, end, by time."""
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0, timestamp_ms=AN_HOUR_AGO + number)
    producer.flush(SECONDS_MAX)
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    assert consumer.beginning_offsets([place]) == {place: 0}
    assert consumer.end_offsets([place]) == {place: 10}
    assert consumer.offsets_for_times({place: AN_HOUR_AGO + 4})[place].offset == 4
    consumer.seek(place, 7)
    assert next(consumer).value == b"7"


def test_administration(admin: KafkaAdminClient) -> None:
    """LOG-5, OPS-1: create, describe, change, grow, delete."""
    topic = unique_name()
    admin.create_topics([NewTopic(topic, 2, 1)])
    eventually(lambda: topic in admin.list_topics())
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000000"})
    admin.alter_configs([resource])
    admin.create_partitions({topic: NewPartitions(4)})
    eventually(lambda: partition_count(admin, topic) == 4)
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())


def test_an_idempotent_producer(node: Node, topic: str, consumer: KafkaConsumer) -> None:
    """PRD-15"""
    client = KafkaProducer(bootstrap_servers=node.address, enable_idempotence=True, batch_size=500)
    try:
        for number in range(1_000):
            client.send(topic, b"%d" % number, partition=0)
        client.flush(SECONDS_MAX)
    finally:
        client.close()
    assert [record.value for record in everything(consumer, topic)] == [
        b"%d" % number for number in range(1_000)
    ]


def everything(consumer: KafkaConsumer, topic: str) -> list[Any]:
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    end = consumer.end_offsets([place])[place]
    records: list[Any] = []
    while consumer.position(place) < end:
        records += consumer.poll(timeout_ms=SECONDS_MAX * 1_000).get(place, [])
    return records


def partition_count(admin: KafkaAdminClient, topic: str) -> int:
    (described,) = admin.describe_topics([topic])
    return len(described["partitions"])
