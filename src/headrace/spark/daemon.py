"""Spark's Python daemon with our libraries loaded: its workers are forks and find them there.

Spark forks a Python process for each task slot from a daemon; what it plans and streams with are
others (`headrace.spark.fork_server`). Importing Arrow, the lake and the source anew in each task
slot takes longer than most tasks work. A session on this machine names this module as its daemon;
on other machines, where Headrace arrives later, Spark's own is used.
"""

import sys

from pyspark import daemon

from headrace.spark.worker_memory import spare_workers

PRELOADED = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.worker.plan_data_source_read",
    "headrace.spark.source.source",
    "headrace.spark.tables.source",
    "headrace.spark.unreadable",
)


def preload() -> None:
    """Import what workers need; one that cannot be loaded is told by whoever needs it."""
    from importlib import import_module

    for name in PRELOADED:
        try:
            import_module(name)
        except ImportError as error:
            print(f"headrace.spark.daemon: {name} was not loaded: {error}", file=sys.stderr)


if __name__ == "__main__":
    preload()
    spare_workers()
    daemon.manager()
