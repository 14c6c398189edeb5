"""Topics for tests of the Spark source: records in, streams out."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.options import parse
from headrace.spark.source.planning import Range
from headrace.spark.source.reading import RangeReader
from headrace.spark.source.record_columns import Wanted
from headrace.spark.source.stream_plan import StreamPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUIET = {"log_level": 0, "enable.metrics.push": False}
SECONDS_MAX = 60.0


def produce(
    bootstrap: str, topic: str, records: Iterable[Mapping[str, Any]], **properties: Any
) -> None:
    """Send records, given as the arguments of confluent-kafka's `produce`."""
    names = {name.replace("_", "."): value for name, value in properties.items()}
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET, **names})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(SECONDS_MAX) == 0


def numbered(count: int, partitions: int = 1, first: int = 0) -> list[dict[str, Any]]:
    """Send records whose values are their numbers, to the partitions in turn."""
    numbers = range(first, first + count)
    return [{"value": b"%d" % number, "partition": number % partitions} for number in numbers]


def read(spark: "SparkSession", bootstrap: str, topic: str, **options: str) -> "DataFrame":
    """A batch; `_` in names of options means a dot."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    reader = spark.read.format("headrace").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).options(**given).load()


def stream(spark: "SparkSession", bootstrap: str, topic: str, **options: str) -> "DataFrame":
    given = {"startingOffsets": "earliest", **options}
    reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).options(**given).load()


class Batches:
    """The values of each micro-batch, over all runs on one checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.values: list[list[int]] = []

    @property
    def all(self) -> list[int]:
        return sorted(value for batch in self.values for value in batch)

    def run(self, frame: "DataFrame") -> None:
        """Run until all existing records are read."""
        query = self.writer(frame).trigger(availableNow=True).start()
        if not query.awaitTermination(int(SECONDS_MAX)):
            query.stop()
            raise AssertionError("the stream did not end in time")

    def writer(self, frame: "DataFrame") -> Any:
        place = str(self.checkpoint)
        return frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", place)

    def _keep(self, batch: "DataFrame", number: int) -> None:
        self.values.append([int(row.value) for row in batch.select("value").collect()])


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def values_of(
    bootstrap: str,
    ranges: Sequence[Range],
    *,
    between: Callable[[], None] | None = None,
    **given: Any,
) -> list[bytes]:
    """Read ranges as a task does, without Spark; `between` runs after the first piece."""
    properties = {
        "bootstrap.servers": bootstrap,
        "fetch.max.bytes": "2000",
        **given.pop("properties", {}),
    }
    found: list[bytes] = []
    with Brokers(properties) as brokers:
        reader = RangeReader(brokers, ranges, Wanted(), **given)
        for number, piece in enumerate(reader.pieces()):
            found += piece.records.values.to_pylist()
            if between is not None and not number:
                between()
    return found


@contextmanager
def planning(bootstrap: str, topic: str, **options: str) -> Iterator[StreamPlan]:
    """The plan of a stream, without Spark; `_` in names of options means a dot."""
    named = {name.replace("_", "."): value for name, value in options.items()}
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **named}
    parsed = parse(given, is_streaming=True)
    with Brokers(parsed.properties) as brokers:
        yield StreamPlan(parsed, brokers)


def whole(topic: str, end: int, partition: int = 0, **given: Any) -> Range:
    return Range(TopicPartition(topic, partition), 0, end, **given)
