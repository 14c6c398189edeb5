"""Runs Spark so that its JVM writes an archive of the classes that pipelines need.

python -m headrace.spark.archive_writer ARCHIVE DIRECTORY
"""

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from headrace.spark.launching.class_archive import DRIVER_OPTIONS
from headrace.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDING_S_MAX = 120


def write_archive(archive: str, directory: str) -> None:
    """Run a session, and wait until its JVM has ended."""
    settings = {
        DRIVER_OPTIONS: quote(f"-XX:ArchiveClassesAtExit={archive}"),
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
    }
    session = open_session("classes", "local[2]", settings)
    # PySpark has no public way to wait for its JVM, which writes the archive when it ends.
    gateway: Any = session.sparkContext._gateway
    use_classes(session, Path(directory))
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_ENDING_S_MAX)


def use_classes(session: "SparkSession", directory: Path) -> None:
    """Run Python tasks, a join, aggregates, Parquet, and a stream with state, as pipelines do."""
    numbers = session.range(100).selectExpr("id", "id % 7 AS residue", "string(id) AS text")
    numbers.mapInArrow(lambda batches: batches, numbers.schema).write.parquet(
        f"{directory}/numbers"
    )
    kept = session.read.parquet(f"{directory}/numbers")
    sums = kept.groupBy("residue").sum("id")
    kept.join(sums, "residue").orderBy("id").toArrow()
    (
        session.readStream.schema(kept.schema)
        .parquet(f"{directory}/numbers")
        .groupBy("residue")
        .count()
        .writeStream.foreachBatch(lambda batch, _: batch.toArrow())
        .outputMode("update")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
        .awaitTermination(_ENDING_S_MAX)
    )


if __name__ == "__main__":
    write_archive(*sys.argv[1:])
