"""Queries made into frames by Spark: names, aliases, watermarks, functions and their workers."""

import datetime as dt
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace import pipelines as dp
from headrace.pipelines.analysing.raw_days import with_day
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.resolving import evaluate
from tests.builders.declared_pipelines import load_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = dt.datetime(2026, 3, 1, 12)


class Given:
    """A resolver with the frames of a test; streams are read from files."""

    def __init__(
        self, spark: "SparkSession", frames: "Mapping[str, DataFrame]", place: Path
    ) -> None:
        self.spark = spark
        self._frames = frames
        self._place = place

    def read(self, name: str) -> "DataFrame":
        return self._frames[name]

    def read_stream(self, name: str) -> "DataFrame":
        folder = str(self._place / name)
        self._frames[name].write.mode("ignore").parquet(folder)
        return self.spark.readStream.schema(self._frames[name].schema).parquet(folder)


@pytest.fixture
def given(spark: "SparkSession", tmp_path: Path) -> Given:
    orders = spark.createDataFrame(
        [(1, "a", NOON), (2, "b", NOON + dt.timedelta(minutes=5))],
        "id INT, who STRING, ts TIMESTAMP",
    )
    people = spark.createDataFrame([("a", "Ada"), ("b", "Bob")], "who STRING, name STRING")
    return Given(spark, {"raw.orders": orders, "trusted.people": people}, tmp_path)


def test_sql_reads_the_frames_of_the_resolver(given: Given) -> None:
    frame = evaluate(
        "WITH named AS (SELECT raw.orders.id, people.name FROM raw.orders"
        " JOIN trusted.people USING (who)) SELECT * FROM named ORDER BY id",
        given,
    )
    assert [tuple(row) for row in frame.collect()] == [(1, "Ada"), (2, "Bob")]


def test_no_view_stays_behind(given: Given) -> None:
    evaluate("SELECT * FROM raw.orders", given)
    with pytest.raises(Exception, match="nope"):
        evaluate("SELECT nope FROM raw.orders", given)
    assert [one for one in given.spark.catalog.listTables() if "headrace" in one.name] == []


def test_a_stream_with_a_watermark_gives_up_its_windows(given: Given) -> None:
    frame = evaluate(
        "SELECT window(ts, '1 minute').start AS minute, count(*) AS n"
        " FROM STREAM(raw.orders) WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
        " GROUP BY window(ts, '1 minute')",
        given,
    )
    assert frame.isStreaming
    query = frame.writeStream.format("memory").queryName("minutes").outputMode("append")
    query.trigger(availableNow=True).start().awaitTermination(120)
    # The second window is still open: rows may come for it.
    assert [tuple(row) for row in given.spark.table("minutes").collect()] == [(NOON, 1)]


def test_evaluations_side_by_side_do_not_mix_up_their_views(
    spark: "SparkSession", tmp_path: Path
) -> None:
    def count(number: int) -> int:
        frames = {"raw.orders": spark.range(number)}
        return evaluate("SELECT * FROM raw.orders", Given(spark, frames, tmp_path)).count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(8))) == list(range(8))


def test_spark_in_a_function_finds_the_tables_of_the_pipeline(given: Given) -> None:
    def query() -> "DataFrame":
        assert dp.spark.readStream.table("raw.orders").isStreaming
        people = dp.spark.sql("SELECT * FROM trusted.people")
        frame: DataFrame = dp.spark.read.table("raw.orders").join(people, "who")
        assert dp.spark.table("raw.orders").count() == dp.read("RAW.Orders").count()
        assert dp.spark.range(3).count() == 3
        return frame

    assert evaluate(query, given).count() == 2


def test_the_day_of_a_record_is_that_of_utc_in_every_session(given: Given) -> None:
    """ARC-4: the place of a raw row does not depend on its writer."""
    query = with_day(
        "SELECT id, ts - INTERVAL '12:00:01' HOUR TO SECOND AS timestamp FROM raw.orders"
    )
    given.spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        found = {row["id"]: row["day"] for row in evaluate(query, given).collect()}
    finally:
        given.spark.conf.set("spark.sql.session.timeZone", "UTC")
    day = NOON.date()
    assert found == {1: day - dt.timedelta(days=1), 2: day}


def test_a_function_must_return_a_frame(given: Given) -> None:
    def forgetful() -> None:
        dp.read("raw.orders")

    with pytest.raises(PipelineError, match="forgetful returned NoneType"):
        evaluate(forgetful, given)  # type: ignore[arg-type]


def test_functions_of_a_pipelines_files_reach_the_workers(given: Given, tmp_path: Path) -> None:
    """The workers do not have the folder, so its functions travel by value."""
    pipeline = load_folder(
        tmp_path,
        {
            "_words.py": "def shout(text):\n    return text.upper() + '!'\n",
            "a.py": "import _words\nfrom headrace import pipelines as dp\n"
            "from pyspark.sql.functions import udf\n"
            "@dp.table(name='staging.x')\n"
            "def x():\n"
            "    return dp.read('raw.orders').select(udf(lambda t: _words.shout(t))('who'))\n",
        },
    )
    rows = evaluate(pipeline.flows[0].query, given).collect()
    assert sorted(row[0] for row in rows) == ["A!", "B!"]
