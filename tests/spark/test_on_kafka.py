"""The same source, and a whole pipeline, on Apache Kafka itself."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.group_descriptions import PartitionLag
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Kafka, Node
from tests.spark.crashes import fails_behind_the_commit
from tests.spark.pipeline_folders import Folder, send
from tests.spark.source_topics import QUIET, Batches, numbered, produce, read, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = """
[pipeline]
name = "shop"
[sources.sales]
topic = "sales"
"""
TABLES = """
CREATE STREAMING TABLE raw.sales AS SELECT * FROM STREAM(sources.sales);

CREATE STREAMING TABLE staging.sales DEAD LETTER TOPIC 'letters' AS
SELECT s.*, topic, partition, offset,
  value AS _payload, CASE WHEN s.id IS NULL THEN 'torn' END AS _error
FROM (SELECT *, from_json(CAST(value AS STRING), 'id LONG, price LONG') AS s
      FROM STREAM(raw.sales));

CREATE MERGED VIEW refined.parity MERGE (sales SUM, price SUM) AS
SELECT id % 2 AS odd, count(*) AS sales, sum(price) AS price FROM STREAM(trusted.sales) GROUP BY 1;

CREATE SINK dear TOPIC 'dear' FORMAT json;
CREATE FLOW alerts AS INSERT INTO dear BY NAME
SELECT id FROM STREAM(trusted.sales) WHERE price > 90;
"""
TRUSTED = """
from headrace import pipelines as dp


@dp.table(name="trusted.sales")
@dp.expect_or_quarantine("priced", "price > 0")
@dp.expect_unique("id")
def sales():
    return dp.read_stream("staging.sales").select("id", "price")
"""
TORN = b"{torn"


@pytest.fixture(scope="module")
def kafka(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(Kafka(), tmp_path_factory.mktemp("kafka"), {})
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


def test_a_pipeline_on_kafka_processes_every_record_exactly_once(
    spark: "SparkSession", kafka: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARC-4, ARC-9: also duplicates, unreadable records, and repeated batches."""
    with Admin(kafka.address) as admin:
        admin.topics.create([NewTopic(name="sales", partitions=3), NewTopic(name="dear")])
    folder = Folder(tmp_path / "pipeline", kafka, spark).write(
        pipeline_toml=SETTINGS, tables_sql=TABLES, trusted_py=TRUSTED
    )
    failed = fails_behind_the_commit(monkeypatch, {"alerts": 1, "staging.sales": 1})
    send(kafka, "sales", [*sales(0, 200), TORN, *sales(0, 50)])
    folder.once()
    assert_sold(folder, 200, torn=1, double=50, free=3)
    assert lag_of(kafka, "shop.raw.sales") == (251, 0)
    send(kafka, "sales", [*sales(200, 300), TORN, *sales(100, 110)])
    assert lag_of(kafka, "shop.raw.sales") == (251, 111)
    folder.once()
    assert_sold(folder, 300, torn=2, double=60, free=5)
    assert lag_of(kafka, "shop.raw.sales") == (362, 0)
    assert sorted(flow for flow, _ in failed) == ["alerts", "staging.sales"]


def sales(first: int, last: int) -> list[dict[str, object]]:
    return [{"id": number, "price": number % 100} for number in range(first, last)]


def assert_sold(folder: Folder, count: int, *, torn: int, double: int, free: int) -> None:
    """Each sale in each place where it belongs; one in a hundred is for nothing."""
    rows, kept = folder.rows, [number for number in range(count) if number % 100]
    places = rows("raw.sales", "topic", "partition", "offset")
    assert len(set(places)) == len(places) == count + torn + double
    assert rows("quarantine.staging__sales", "reason", "payload") == [("torn", TORN)] * torn
    assert folder.read_topic("letters") == [TORN] * torn
    assert rows("quarantine.trusted__sales", "rule") == ["priced"] * free
    assert rows("trusted.sales", "id", "price") == [(number, number % 100) for number in kept]
    lines = [[number for number in kept if number % 2 == odd] for odd in (0, 1)]
    assert rows("refined.parity", "odd", "sales", "price") == [
        (odd, len(line), sum(number % 100 for number in line)) for odd, line in enumerate(lines)
    ]
    dear = [json.loads(value)["id"] for value in folder.read_topic("dear")]
    assert sorted(dear) == [number for number in kept if number % 100 > 90]


def lag_of(kafka: Node, group: str) -> tuple[int, int]:
    """Return the numbers of read and unread records by a group's committed offsets."""
    with Admin(kafka.address) as admin:
        lags: list[PartitionLag] = admin.groups.lag(group, time.time_ns() // 1_000_000)
    return sum(one.committed or 0 for one in lags), sum(one.lag or 0 for one in lags)
