"""A streaming query as a program of its own, for tests that kill it: copies one topic to another.

    python -m tests.jobs.copying_query SERVERS INPUT OUTPUT CHECKPOINT

Ends when everything that was in the input at its start is written. A query that fails is started
again in the same session, as pipelines do; if Spark itself is lost, the program ends.
"""

import sys

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headrace.spark.session import open_session

MASTER = "local[2,4]"
"""Tasks are tried four times: what kills a worker must not end the query."""
ATTEMPTS = 5


def main(servers: str, source: str, target: str, checkpoint: str) -> None:
    spark = open_session("copying", MASTER)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            copy(spark, servers, source, target, checkpoint)
        except StreamingQueryException as error:
            if attempt == ATTEMPTS:
                raise
            print(f"failed, and is started again: {error}", file=sys.stderr)
        else:
            break
    spark.stop()


def copy(spark: SparkSession, servers: str, source: str, target: str, checkpoint: str) -> None:
    rows = (
        spark.readStream.format("headrace")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "500")
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("headrace")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
