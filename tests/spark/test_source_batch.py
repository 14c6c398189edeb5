"""Batches by `format("headrace")`: the rows of the stock connector, in fewer tasks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Producer, TopicPartition
from pyspark.errors import AnalysisException

from headrace.spark.source import planning
from headrace.spark.source.source import DefaultSource
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.source_topics import QUIET, numbered, produce, read

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

HIDE_TRACEBACK = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"
VARIED: list[dict[str, Any]] = [
    {"key": b"k", "value": b"v"},
    {"key": None, "value": b"only a value"},
    {"key": b"only a key", "value": None},
    {"key": b"", "value": b"", "headers": [("a", b"1"), ("a", None), ("ü", b"")]},
    {"key": b"\xff\x00", "value": b"x" * 5_000, "timestamp": 1_700_000_000_123},
]


def consumed(bootstrap: str, topic: str, count: int) -> list[tuple[object, ...]]:
    """Return the same records, read by librdkafka."""
    group = {"group.id": "judge", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **group, **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[object, ...]] = []
    while len(found) < count:
        for message in consumer.consume(count, 1.0):
            assert message.error() is None
            kind, moment = message.timestamp()
            assert kind == TIMESTAMP_CREATE_TIME
            headers = [tuple(pair) for pair in message.headers() or ()] or None
            found.append((message.offset(), message.key(), message.value(), moment, headers))
    consumer.close()
    return found


def as_tuples(rows: "list[Row]") -> list[tuple[object, ...]]:
    return [
        (
            row.offset,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            row.at_ms,
            None if row.headers is None else [_pair(header) for header in row.headers],
        )
        for row in rows
    ]


def _pair(header: "Row") -> tuple[str, bytes | None]:
    return header.key, None if header.value is None else bytes(header.value)


def test_every_field_of_every_record_is_read_with_every_compression(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(broker.bootstrap_servers, topic, VARIED * 20, compression_type=codec, linger_ms=50)
    rows = read(spark, broker.bootstrap_servers, topic, includeHeaders="true").selectExpr(
        "offset", "key", "value", "unix_millis(timestamp) AS at_ms", "headers"
    )
    expected = consumed(broker.bootstrap_servers, topic, 500)
    assert as_tuples(rows.orderBy("offset").collect()) == expected


def test_aborted_transactions_are_visible_only_to_readers_of_uncommitted_records(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    identity = {"transactional.id": f"writer-{topic}"}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **identity, **QUIET})
    producer.init_transactions()
    for number, ends_well in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        producer.flush()
        producer.commit_transaction() if ends_well else producer.abort_transaction()

    def values(level: str) -> list[int]:
        frame = read(spark, broker.bootstrap_servers, topic, kafka_isolation_level=level)
        return sorted(int(row.value) for row in frame.collect())

    assert values("read_committed") == [0, 2]
    assert values("read_uncommitted") == [0, 1, 2]


def test_bounds_are_offsets_or_times(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    base_ms = 1_790_000_000_000
    records = [
        {"value": b"%d" % number, "partition": number % 2, "timestamp": base_ms + number}
        for number in range(100)
    ]
    produce(broker.bootstrap_servers, topic, records)

    def values(**options: str) -> list[int]:
        frame = read(spark, broker.bootstrap_servers, topic, **options)
        return sorted(int(row.value) for row in frame.collect())

    ends = json.dumps({topic: {"0": 2, "1": -1}})
    starts = json.dumps({topic: {"0": -2, "1": 48}})
    assert values(startingOffsets=starts, endingOffsets=ends) == [0, 2, 97, 99]
    times = {"startingTimestamp": str(base_ms + 90), "endingTimestamp": str(base_ms + 94)}
    assert values(**times) == [90, 91, 92, 93]
    late = json.dumps({topic: {"0": base_ms + 96, "1": base_ms + 98}})
    assert values(startingOffsetsByTimestamp=late) == [96, 98, 99]
    with pytest.raises(Exception, match="the offset 2 of endingOffsets is before the offset"):
        values(startingTimestamp=str(base_ms + 90), endingOffsets=ends)


@contextmanager
def setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before or "false")


@pytest.mark.parametrize("is_allowed", ["true", "false"])
def test_a_frame_has_all_rows_for_every_query_independent_of_earlier_ones(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, is_allowed: str
) -> None:
    """Spark has one plan of the source for all queries, and would keep filters that it pushed."""
    topic = make_topic(partitions=3)
    produce(broker.bootstrap_servers, topic, numbered(300, 3))
    with setting(spark, "spark.sql.python.filterPushdown.enabled", is_allowed):
        frame = read(spark, broker.bootstrap_servers, topic)
        chosen = frame.filter("partition = 1 AND offset >= 90 AND offset < 95")
        assert sorted(int(row.value) for row in chosen.collect()) == [271, 274, 277, 280, 283]
        assert frame.filter("timestamp > current_timestamp() + INTERVAL 1 HOUR").count() == 0
        assert frame.count() == 300
        parts = [frame.filter(f"partition = {partition}") for partition in range(2)]
        assert parts[0].union(parts[1]).union(frame).count() == 500
        assert parts[0].alias("a").join(parts[1].alias("b"), "offset").count() == 100


def test_a_frame_ends_at_the_end_of_the_topic_at_its_first_query(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    """Spark keeps the plan; the stock connector looks up the offsets for every query."""
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, numbered(3))
    frame = read(spark, broker.bootstrap_servers, topic)
    assert frame.count() == 3
    produce(broker.bootstrap_servers, topic, numbered(2))
    assert frame.count() == 3
    assert read(spark, broker.bootstrap_servers, topic).count() == 5


def test_filters_limit_the_fetched_records_if_the_option_is_set(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    produce(broker.bootstrap_servers, topic, numbered(300, 3))

    def chosen(condition: str, **options: str) -> tuple[int, list[int]]:
        frame = read(spark, broker.bootstrap_servers, topic, minPartitions="3", **options)
        rows = frame.filter(condition)
        return rows.rdd.getNumPartitions(), sorted(int(row.value) for row in rows.collect())

    narrow = "partition = 1 AND offset >= 98"
    future = "timestamp > current_timestamp() + INTERVAL 1 HOUR"
    recent = "timestamp >= current_timestamp() - INTERVAL 1 HOUR"
    assert chosen(narrow) == (3, [295, 298])
    assert chosen(narrow, pushFilters="true") == (2, [295, 298])
    assert chosen(future, pushFilters="true") == (1, [])  # Spark makes one of no tasks.
    assert chosen(recent, pushFilters="true") == (3, list(range(300)))


def test_small_partitions_share_a_task_and_large_ones_have_several(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic(partitions=4)
    produce(broker.bootstrap_servers, topic, numbered(400, 4))
    shared = read(spark, broker.bootstrap_servers, topic)
    split = read(spark, broker.bootstrap_servers, topic, minPartitions="8")
    bounded = read(spark, broker.bootstrap_servers, topic, maxRecordsPerPartition="30")
    assert [frame.rdd.getNumPartitions() for frame in (shared, split, bounded)] == [1, 8, 16]
    assert [frame.distinct().count() for frame in (shared, split, bounded)] == [400, 400, 400]
    monkeypatch.setattr(planning, "TASK_ROWS_LARGE", 30)
    monkeypatch.setattr(planning, "TASK_ROWS_SMALL", 10)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    reader = DefaultSource(given).reader(shared.schema)
    tasks = reader.partitions()
    batches: list[Any] = [batch for task in tasks for batch in reader.read(task)]
    rows = [batch.column("value").to_pylist() for batch in batches]
    assert [len(task.value) for task in tasks] == [1] * 16
    assert [int(value) for values in rows for value in values] == [
        number for partition in range(4) for number in range(partition, 400, 4)
    ]


def test_only_the_requested_columns_are_returned(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, numbered(3))
    frame = read(spark, broker.bootstrap_servers, topic, columns="offset,value")
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [
        (0, bytearray(b"0")),
        (1, bytearray(b"1")),
        (2, bytearray(b"2")),
    ]


def test_a_payload_that_is_not_json_becomes_a_row_with_the_error(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    """SCH-5: a malformed payload is kept with the reason."""
    topic = make_topic()
    good = {"value": b'{"id": 7, "name": "ada"}'}
    produce(broker.bootstrap_servers, topic, [good, {"value": b"{oops"}])
    frame = read(
        spark, broker.bootstrap_servers, topic, format="json", schema="id LONG, name STRING"
    )
    first, second = frame.orderBy("offset").collect()
    assert (first.id, first.name, first._error, first._payload) == (7, "ada", None, None)
    assert (second.id, second.name, bytes(second._payload)) == (None, None, b"{oops")
    assert second._error
    assert (second.topic, second.partition, second.offset) == (topic, 0, 1)


def test_topics_by_pattern_and_by_assignment(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    name = f"by-pattern-{make_topic()}"
    topics = [make_topic(name, partitions=2) for _ in range(2)]
    for topic in topics:
        produce(broker.bootstrap_servers, topic, numbered(10, 2))
    reader = spark.read.format("headrace").option(
        "kafka.bootstrap.servers", broker.bootstrap_servers
    )
    assert reader.option("subscribePattern", f"{name}.*").load().count() == 20
    reader = spark.read.format("headrace").option(
        "kafka.bootstrap.servers", broker.bootstrap_servers
    )
    assigned = json.dumps({topics[0]: [1]})
    assert reader.option("assign", assigned).load().count() == 5


@pytest.mark.parametrize(("hides", "line"), [("false", -2), ("true", 0)])
@pytest.mark.parametrize("way", ["read", "readStream"])
def test_load_rejects_an_invalid_option_with_the_line_in_the_docs(
    way: str, hides: str, line: int, spark: "SparkSession"
) -> None:
    """In a plain PySpark program; Spark joins its own message with ours."""
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", "groop": "a"}
    spark.conf.set(HIDE_TRACEBACK, hides)
    try:
        with pytest.raises(AnalysisException) as raised:
            getattr(spark, way).format("headrace").options(**given).load()
    finally:
        spark.conf.unset(HIDE_TRACEBACK)
    line_found = str(raised.value).splitlines()[line]
    assert line_found.endswith("InvalidOption: there is no option groop; did you mean group?")


def test_an_unknown_topic_is_reported_with_the_most_similar_one(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic("journeys")
    with pytest.raises(Exception, match=f"does not exist; near it: .*{topic}"):
        read(spark, broker.bootstrap_servers, topic[:-1]).count()
