"""A job by Spark's stock connector: a batch, a stream and one in real-time mode.

    python -m tests.stock_connector_job SERVERS JARS DIRECTORY INPUT BATCH STREAM REALTIME

It runs in a process of its own, as jars are taken when the JVM starts.
"""

import json
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from headrace.spark.session import open_session

REALTIME_S_MAX = 90.0


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
    print(json.dumps({"count": count}))
    spark.stop()


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
