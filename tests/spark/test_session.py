"""The settings of a session, and the environment of its Python processes."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.spark_processes import worker_megabytes
from headrace.spark.launching.class_archive import archive_path
from headrace.spark.launching.fork_server import fork_server
from tests.processes.process_trees import descendants

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_tasks_load_the_installed_pyspark_and_not_a_zip(spark: "SparkSession") -> None:
    def places(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow
        import pyspark

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"place": [pyspark.__file__]})

    found = spark.range(1).mapInArrow(places, "place STRING").collect()
    assert [".zip" in row.place for row in found] == [False]


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has mapped is in /proc")
def test_the_jvm_has_the_archive_of_classes_in_its_memory(spark: "SparkSession") -> None:
    archive = archive_path()
    assert archive is not None
    if not archive.exists():
        pytest.skip("the archive is missing; make it by: headrace spark warm")
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    assert str(archive) in Path(f"/proc/{jvm}/maps").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="forks are used there alone")
def test_tasks_run_in_forks_whose_memory_benchmarks_see(spark: "SparkSession") -> None:
    def parents(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import os

        import pyarrow

        for _ in batches:
            large = b"x" * (300 << 20)
            yield pyarrow.RecordBatch.from_pydict({"parent": [os.getppid()], "n": [len(large)]})

    (row,) = spark.range(1).mapInArrow(parents, "parent LONG, n LONG").collect()
    server = fork_server()
    assert server is not None
    assert row.parent in descendants(server.process.pid)
    assert worker_megabytes() > 300
