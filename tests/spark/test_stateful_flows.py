"""Spark's state from batch to batch, and a table with a batch that Spark has not recorded."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.crashes import fails_behind_the_commit
from tests.spark.pipeline_folders import Folder, send, toml

SCHEMA = "id LONG, kind STRING, at TIMESTAMP"
TABLES = """
from headrace import pipelines as dp
from pyspark.sql import functions as F


def events(kind):
    rows = dp.read_stream("sources.events").where(F.col("kind") == kind).select("id", "at")
    return rows.withWatermark("at", "10 seconds")


@dp.expect_unique("minute")
@dp.expect_rows(0, 1)
@dp.expect_or_fail("counted", dp.of_batch("min(n) > 0"))
@dp.table(name="refined.minutes")
def minutes():
    counts = events("asked").groupBy(F.window("at", "1 minute")).agg(F.count("*").alias("n"))
    return counts.select(F.minute("window.start").alias("minute"), "n")


@dp.expect_rows(0, 100)
@dp.table(name="refined.answered")
def answered():
    asked, replied = events("asked").alias("a"), events("replied").alias("r")
    is_soon = F.expr("a.id = r.id AND r.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES")
    return asked.join(replied, is_soon).select("a.id")
"""


def event(number: int, minute: int, kind: str = "asked") -> dict[str, object]:
    return {"id": number, "kind": kind, "at": f"2026-03-01T12:{minute:02}:30Z"}


def test_windows_and_joins_stay_exact_after_failures_behind_commits(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each batch is in the table and is repeated; the state that it left in Spark must stay.

    Rules about batches and keys read the rows more than once, and many batches have no rows.
    """
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("remembering", topic, SCHEMA), tables_py=TABLES
    )
    cut = {"refined.minutes": 2, "refined.answered": 1}
    failed = fails_behind_the_commit(monkeypatch, cut)
    send(broker, topic, [event(0, 0), event(1, 0), event(2, 1), event(3, 3)])
    folder.once()
    assert folder.rows("refined.minutes", "minute", "n") == [(0, 2), (1, 1)]
    replied = [event(number, 3, "replied") for number in (0, 1, 2, 3)]
    send(broker, topic, [*replied, event(4, 3), event(5, 9), event(5, 9, "replied")])
    folder.once()
    assert folder.rows("refined.minutes", "minute", "n") == [(0, 2), (1, 1), (3, 2)]
    assert folder.rows("refined.answered", "id") == [0, 1, 2, 3, 5]
    assert {flow for flow, _ in failed} == set(cut)
