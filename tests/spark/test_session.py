"""What a session starts with, and what it gives the Python processes that it starts."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.spark_processes import worker_megabytes
from headrace.spark.class_archive import archive_of
from headrace.spark.fork_server import fork_server
from headrace.spark.home import own_home
from headrace.spark.session import CHECKPOINT_MANAGER
from tests.processes import descendants

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
    home = own_home()
    assert home is not None
    archive = archive_of(home)
    if not archive.exists():
        pytest.skip("there is none; make it by: headrace spark warm")
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    assert str(archive) in Path(f"/proc/{jvm}/maps").read_text()


def test_a_local_session_has_the_checkpoint_manager_that_starts_no_processes(
    spark: "SparkSession",
) -> None:
    assert "FileSystemBased" in (spark.conf.get(CHECKPOINT_MANAGER) or "")


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
