"""What a session gives the Python processes that it starts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
