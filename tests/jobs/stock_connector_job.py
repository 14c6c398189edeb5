"""A job by Spark's stock connector: a batch, a stream and one in real-time mode.

    python -m tests.jobs.stock_connector_job SERVERS JARS DIRECTORY INPUT BATCH STREAM REALTIME

It prints how much it has read, and the rows of what was captured into the directory. It runs in a
process of its own, as jars are taken when the JVM starts.
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from headrace.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REALTIME_S_MAX = 90.0
CAPTURED = ("avro", "parquet")
"""Formats of captured files, each in a folder of its own."""


def main(
    servers: str, jars: str, directory: str, source: str, batch: str, stream: str, realtime: str
) -> None:
    spark = open_session("stock-connector", "local[2]", {"spark.jars": jars})
    read = {
        "kafka.bootstrap.servers": servers,
        "subscribe": source,
        "startingOffsets": "earliest",
    }
    rows = spark.read.format("kafka").options(**read).load()
    count = rows.count()
    write = {"kafka.bootstrap.servers": servers}
    rows.select("value").write.format("kafka").options(**write, topic=batch).save()
    streamed = spark.readStream.format("kafka").options(**read).load().select("value")
    query = (
        streamed.writeStream.format("kafka")
        .options(**write, topic=stream, checkpointLocation=str(Path(directory) / "stream"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    query = (
        streamed.writeStream.format("kafka")
        .options(**write, topic=realtime, checkpointLocation=str(Path(directory) / "realtime"))
        .outputMode("update")
        .trigger(realTime="5 seconds")  # type: ignore[call-overload]  # Not in its hints yet.
        .start()
    )
    await_records(servers, realtime, count)
    assert query.isActive, query.exception()
    query.stop()
    captured = {suffix: captured_rows(spark, suffix, directory) for suffix in CAPTURED}
    print(json.dumps({"count": count, "captured": captured}))
    spark.stop()


def captured_rows(spark: "SparkSession", suffix: str, directory: str) -> list[list[object]]:
    """Rows of captured files as Spark reads them, in the order of their offsets."""
    from pyspark.sql.functions import unix_millis

    reader = spark.read.format(suffix).option("recursiveFileLookup", "true")
    rows = reader.load(str(Path(directory) / suffix)).orderBy("offset")
    times = rows.withColumn("timestamp", unix_millis("timestamp"))
    return [
        [
            *(row[name] for name in ("topic", "partition", "offset", "timestamp")),
            *(text(row["key"]), text(row["value"])),
            [[header["key"], text(header["value"])] for header in row["headers"]],
        ]
        for row in times.collect()
    ]


def text(value: bytes | None) -> str | None:
    """Bytes as JSON can have them."""
    return None if value is None else bytes(value).hex()


def await_records(servers: str, topic: str, count: int) -> None:
    """Wait until so many records are in a topic of one partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "stock-connector-job"})
    deadline = time.monotonic() + REALTIME_S_MAX
    try:
        while True:
            bounds = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
            if bounds is not None and bounds[1] >= count:
                return
            assert time.monotonic() < deadline, f"{topic} has {bounds}"
            time.sleep(0.2)
    finally:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
