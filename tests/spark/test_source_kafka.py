"""The same source on Apache Kafka itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from tests.kafka_release import KafkaRelease
from tests.nodes import Kafka, Node
from tests.spark.source_topics import QUIET, Batches, numbered, produce, read, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def kafka(kafka_release: KafkaRelease, tmp_path: Path) -> Iterator[Node]:
    node = Node(Kafka(), tmp_path / "kafka", {})
    node.start()
    yield node
    node.kill()


def test_kafka_s_topics_are_read_in_batches_and_streams(
    spark: "SparkSession", kafka: Node, tmp_path: Path
) -> None:
    with Admin(kafka.address) as admin:
        admin.topics.create([NewTopic(name="orders", partitions=3)])
    for index, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        records = numbered(300, 3, first=300 * index)
        produce(kafka.address, "orders", records, compression_type=codec)
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": "w", **QUIET})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"-1", partition=0)
    producer.flush()
    producer.abort_transaction()

    committed = {"kafka.isolation.level": "read_committed"}
    batch = read(spark, kafka.address, "orders", kafka_isolation_level="read_committed")
    assert sorted(int(row.value) for row in batch.collect()) == list(range(1_500))
    batches = Batches(tmp_path / "checkpoint")
    options = {**committed, "maxOffsetsPerTrigger": "600"}
    batches.run(stream(spark, kafka.address, "orders", **options))
    assert batches.all == list(range(1_500))
    assert len(batches.values) == 3
