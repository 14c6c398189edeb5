"""A job for any cluster: reads a topic, as a batch and as a stream, and writes it to others.

    python -m tests.jobs.cluster_job MASTER SERVERS INPUT PYTHON [BATCH STREAM CHECKPOINT]

With an empty PYTHON the workers run the driver's; without outputs it only reads, for which one
executor is enough. Prints its counts and the Python of the workers, as JSON. It runs in a
process of its own, as a process has one session.
"""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.spark.session import PYTHON, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(master: str, servers: str, source: str, python: str, *outputs: str) -> None:
    settings = {PYTHON: python} if python else {}
    if not outputs:
        settings["spark.cores.max"] = "1"
    spark = open_session("cluster-job", master, settings)
    kafka = {"kafka.bootstrap.servers": servers}
    read = {**kafka, "subscribe": source, "startingOffsets": "earliest"}
    rows = spark.read.format("headrace").options(**read).load()
    print(json.dumps({"count": rows.count(), "python": python_of(spark)}))
    if outputs:
        write(spark, kafka, read, *outputs)
    spark.stop()


def write(
    spark: "SparkSession",
    kafka: Mapping[str, str],
    read: Mapping[str, str],
    batch_output: str,
    stream_output: str,
    checkpoint: str,
) -> None:
    """Copy the topic once as a batch and once as a stream."""
    rows = spark.read.format("headrace").options(**read).load()
    rows.select("key", "value").write.format("headrace").mode("append").options(
        **kafka, topic=batch_output
    ).save()
    query = (
        spark.readStream.format("headrace")
        .options(**read, maxOffsetsPerTrigger="1000")
        .load()
        .select("key", "value")
        .writeStream.format("headrace")
        .options(**kafka, topic=stream_output, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def python_of(spark: "SparkSession") -> str:
    """The Python that tasks run."""
    from pyspark.sql.functions import udf
    from pyspark.sql.types import StringType

    running = udf(lambda: sys.executable, StringType())
    (row,) = spark.range(1).select(running().alias("python")).collect()
    found: str = row["python"]
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
