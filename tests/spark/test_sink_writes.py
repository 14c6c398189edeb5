"""The sink as Spark users call it: `df.write`, `foreachBatch` and `df.writeStream`."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, lit, struct

from headrace.client.admin import Admin
from headrace.serdes import AvroDeserializer, NewSchema, RegistryClient
from headrace.testing.process import BrokerProcess
from tests.clients.committed_records import committed_messages, committed_values
from tests.processes.registries import running_registry
from tests.spark.conftest import MakeTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Save = Callable[..., None]

ORDER = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"name","type":["null","string"],"default":null}]}'
)


@pytest.fixture
def save(broker: BrokerProcess) -> Save:
    """Write a DataFrame by the sink, with options."""

    def write(rows: "DataFrame", **options: str) -> None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        (
            rows.write.format("headrace")
            .mode("append")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .options(**named)
            .save()
        )

    return write


def numbers(spark: "SparkSession", count: int, tasks: int = 2) -> "DataFrame":
    return spark.range(0, count, 1, tasks).select(col("id").cast("string").alias("value"))


@pytest.mark.parametrize("guarantee", ["exactly-once", "idempotent", "at-least-once"])
def test_every_row_of_a_dataframe_is_written(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: MakeTopic,
    save: Save,
    guarantee: str,
) -> None:
    topic = make_topic("out", partitions=3)
    save(numbers(spark, 25_000), topic=topic, guarantee=guarantee)
    values = committed_values(broker.bootstrap_servers, topic)
    assert sorted(int(value or b"-1") for value in values) == list(range(25_000))


def test_each_part_of_a_record_arrives(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, save: Save
) -> None:
    topic = make_topic("out", partitions=3)
    rows = spark.sql(
        f"SELECT 'k' AS key, X'0001' AS value, '{topic}' AS topic, 2 AS partition,"
        " array(named_struct('key', 'h', 'value', X'FF')) AS headers,"
        " TIMESTAMP '2026-01-01 00:00:00' AS timestamp"
    )
    save(rows)
    (message,) = committed_messages(broker.bootstrap_servers, topic)
    assert (message.key(), message.value(), message.partition()) == (b"k", b"\x00\x01", 2)
    assert message.headers() == [("h", b"\xff")]
    assert message.timestamp()[1] == 1_767_225_600_000


def test_columns_become_json_and_rows_of_nulls_tombstones(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, save: Save
) -> None:
    topic = make_topic("out")
    rows = spark.createDataFrame(
        [("a", 1, "x"), ("b", None, None)], "key STRING, id INT, name STRING"
    ).withColumn("inner", struct(lit(1).alias("n")))
    save(rows.drop("inner").coalesce(1), topic=topic, value_format="json")
    messages = committed_messages(broker.bootstrap_servers, topic)
    assert [(one.key(), one.value()) for one in messages] == [
        (b"a", b'{"id":1,"name":"x"}'),
        (b"b", None),
    ]
    save(rows, topic=topic, value_format="json", value_columns="inner")
    assert json.loads(committed_values(broker.bootstrap_servers, topic)[1] or b"") == {
        "inner": {"n": 1}
    }


def test_a_write_with_a_token_counts_once(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, save: Save
) -> None:
    topic = make_topic("out")
    for batch in ("0", "1", "1", "0"):
        save(numbers(spark, 10), topic=topic, token_writer=topic, token_batch=batch)
    assert len(committed_values(broker.bootstrap_servers, topic)) == 20


def test_a_write_without_a_token_counts_each_time(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, save: Save
) -> None:
    topic = make_topic("out")
    for _ in range(2):
        save(numbers(spark, 10), topic=topic)
    assert len(committed_values(broker.bootstrap_servers, topic)) == 20


def topics_of(broker: BrokerProcess) -> set[str | None]:
    with Admin(broker.bootstrap_servers) as admin:
        return {topic.name for topic in admin.cluster.metadata().topics}


def test_several_tasks_are_rejected_for_a_single_transaction(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, save: Save
) -> None:
    with pytest.raises(
        PySparkException, match=r"add coalesce\(1\) before the write|create it first"
    ):
        save(numbers(spark, 10, tasks=2), topic="left-behind", singleTransaction="true")
    assert "left-behind" not in topics_of(broker)
    topic = make_topic("out")
    with pytest.raises(PySparkException, match=r"add coalesce\(1\) before the write"):
        save(numbers(spark, 10, tasks=2), topic=topic, singleTransaction="true")
    assert committed_values(broker.bootstrap_servers, topic) == []
    save(numbers(spark, 10, tasks=2).coalesce(1), topic=topic, singleTransaction="true")
    assert len(committed_values(broker.bootstrap_servers, topic)) == 10


@pytest.mark.parametrize(
    ("sql", "options", "error"),
    [
        ("SELECT 1 AS id", {"topic": "x"}, "there is no column `value`"),
        ("SELECT 1 AS value", {"topic": "x"}, "`value` is int and must be STRING or BINARY"),
        ("SELECT 'a' AS value", {}, "set the option topic"),
        ("SELECT 'a' AS value", {"topic": "x", "guarantee": "maybe"}, "guarantee must be one of"),
        ("SELECT 'a' AS value", {"topic": "x", "token_batch": "1"}, "belong together"),
        ("SELECT 'a' AS value", {"topic": "x", "kafka_ack": "1"}, "did you mean kafka.acks"),
    ],
)
def test_unwritable_rows_and_invalid_options_are_reported_before_any_task_runs(
    spark: "SparkSession",
    broker: BrokerProcess,
    save: Save,
    sql: str,
    options: dict[str, str],
    error: str,
) -> None:
    with pytest.raises(PySparkException, match=error):
        save(spark.sql(sql), **options)
    assert "x" not in topics_of(broker)


class RateQuery:
    """A stream of numbers, a hundred per batch, that always has another batch."""

    def __init__(self, spark: "SparkSession", broker: BrokerProcess, place: Path) -> None:
        self._spark = spark
        self._servers = broker.bootstrap_servers
        self._place = place

    def run(self, topic: str, batches: int, **options: str) -> None:
        """Run until this number of batches is committed in the checkpoint."""
        rows = (
            self._spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 100)
            .option("numPartitions", 2)
            .option("startTimestamp", 1000)
            .load()
        )
        named = {name.replace("_", "."): value for name, value in options.items()}
        query = (
            rows.select(col("value").cast("string").alias("value"))
            .writeStream.format("headrace")
            .option("kafka.bootstrap.servers", self._servers)
            .option("topic", topic)
            .option("checkpointLocation", str(self._place))
            .options(**named)
            .start()
        )
        try:
            while len(self.committed) < batches:
                assert query.isActive, query.exception()
                time.sleep(0.05)
        finally:
            query.stop()

    @property
    def committed(self) -> list[int]:
        """The batches that Spark has committed."""
        return sorted(
            int(path.name) for path in (self._place / "commits").glob("*") if path.name.isdigit()
        )

    def forget(self, batch: int) -> None:
        """Remove Spark's record of a finished batch, as after a crash just before it."""
        for name in (str(batch), f".{batch}.crc"):
            (self._place / "commits" / name).unlink(missing_ok=True)


def test_a_batch_that_spark_repeats_is_written_once(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("out", partitions=2)
    query = RateQuery(spark, broker, tmp_path / "checkpoint")
    for batches in (2, 4, 6):
        query.run(topic, batches)
        query.forget(query.committed[-1])
    query.run(topic, 7)
    values = [int(value or b"-1") for value in committed_values(broker.bootstrap_servers, topic)]
    assert len(values) >= 700
    assert sorted(values) == list(range(len(values)))


def test_a_writers_name_outlives_the_checkpoint(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("out")
    RateQuery(spark, broker, tmp_path / "one").run(topic, 3, token_writer=topic)
    before = committed_values(broker.bootstrap_servers, topic)
    RateQuery(spark, broker, tmp_path / "two").run(topic, 2, token_writer=topic)
    assert committed_values(broker.bootstrap_servers, topic) == before


def test_a_batch_function_writes_with_the_batchs_number(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, save: Save, tmp_path: Path
) -> None:
    topic = make_topic("out")

    def write_twice(rows: "DataFrame", number: int) -> None:
        for _ in range(2):
            save(rows, topic=topic, token_writer=topic, token_batch=str(number))

    numbers(spark, 100).write.parquet(str(tmp_path / "numbers"))
    query = (
        spark.readStream.schema("value STRING")
        .parquet(str(tmp_path / "numbers"))
        .writeStream.foreachBatch(write_twice)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(committed_values(broker.bootstrap_servers, topic)) == 100


def test_rows_are_written_by_a_schema_of_a_registry(
    spark: "SparkSession",
    broker: BrokerProcess,
    make_topic: MakeTopic,
    save: Save,
    tmp_path: Path,
) -> None:
    """SCH-9, SCH-14: as Avro that any client of the registry reads, this source included."""
    topic = make_topic("out")
    address = broker.bootstrap_servers
    rows = spark.createDataFrame([("a", 1, "x"), ("b", 2, None)], "key STRING, id INT, name STRING")
    with (
        running_registry(address, tmp_path, "sink") as registry,
        RegistryClient(registry.url) as client,
    ):
        client.register(f"{topic}-value", NewSchema(ORDER))
        options = {"value.format": "avro", "schema.registry.url": registry.url}
        save(rows.coalesce(1), topic=topic, **options)
        unfit = {**options, "schema.registry.subject": f"{topic}-value"}
        with pytest.raises(PySparkException, match="id"):
            save(rows.select("key", "name").coalesce(1), topic="unfit", **unfit)
        assert "unfit" not in topics_of(broker)
        read = AvroDeserializer(client).of_values
        values = [read(topic, value) for value in committed_values(address, topic)]
        again = (
            spark.read.format("headrace")
            .option("kafka.bootstrap.servers", address)
            .options(subscribe=topic, format="avro", **{"schema.registry.url": registry.url})
            .load()
            .select("id", "name")
            .collect()
        )
    assert values == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
    assert [tuple(row) for row in again] == [(1, "x"), (2, None)]
