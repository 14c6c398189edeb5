"""Batch runs and streams at once: neither has to wait until the other has ended."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Continuously, Folder, eventually, send, toml

SCHEMA = "id LONG"
SLOTS = 2
"""Of the session that tests share."""
HOLDING = '''
import os
import time
from pathlib import Path

from pyspark.sql import DataFrame

GATE = Path({gate!r})


def held(batches):
    """Hold a slot until there is a gate; who has come so far is seen by a file."""
    (GATE.parent / f"held.{{os.getpid()}}").touch()
    while not GATE.exists():
        time.sleep(0.05)
    yield from batches


def wide(rows: DataFrame) -> DataFrame:
    """More tasks than there are slots."""
    return rows.repartition(8).mapInArrow(held, "id long")
'''
HELD_VIEW = """
from headrace import pipelines as dp
from pyspark.sql import SparkSession


@dp.materialized_view(name="refined.held", refresh="1 second")
def held_view():
    return wide(SparkSession.active().range(8))
"""
HELD_FLOW = """
from headrace import pipelines as dp


@dp.table(name="raw.held")
def held_flow():
    return wide(dp.read_stream("sources.events").select("id"))
"""
NUMBERS = "CREATE STREAMING TABLE raw.numbers AS SELECT id FROM STREAM(sources.events);"
COUNTED = """
CREATE MATERIALIZED VIEW refined.counted REFRESH EVERY 1 SECONDS AS
SELECT count(*) AS n FROM sources.events;
"""


class Gate:
    """A file that tasks wait for."""

    def __init__(self, place: Path) -> None:
        self.path = place / "gate"

    @property
    def is_full(self) -> bool:
        """Whether as many tasks wait as there are slots, so that no other can run."""
        return len(list(self.path.parent.glob("held.*"))) >= SLOTS

    def code(self, more: str) -> str:
        return HOLDING.format(gate=str(self.path)) + more

    def open(self) -> None:
        self.path.touch()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.open()


@pytest.fixture
def folder(tmp_path: Path, broker: BrokerProcess, spark: SparkSession) -> Folder:
    assert spark.sparkContext.defaultParallelism == SLOTS
    return Folder(tmp_path / "pipeline", broker, spark)


def test_a_batch_run_whose_tasks_do_not_end_does_not_hold_up_streams(
    folder: Folder, make_topic: MakeTopic, gate: Gate
) -> None:
    """ARC-5: batch and streaming are isolated."""
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("held-batch", topic, SCHEMA),
        tables_sql=NUMBERS,
        views_py=gate.code(HELD_VIEW),
    )
    with Continuously([folder]) as running:
        eventually(lambda: gate.is_full, "the batch run has all slots")
        for count in (1, 2):
            send(folder.broker, topic, [{"id": count}])
            eventually(partial(has_rows, folder, "raw.numbers", count), f"{count} rows")
        assert not has_rows(folder, "refined.held", 1)
        gate.open()
        eventually(lambda: has_rows(folder, "refined.held", 8), "the batch run ends as well")
        running.check()


def test_a_stream_whose_tasks_do_not_end_does_not_hold_up_batch_runs(
    folder: Folder, make_topic: MakeTopic, gate: Gate
) -> None:
    """ARC-5"""
    topic = make_topic()
    send(folder.broker, topic, ({"id": number} for number in range(40)))
    folder.write(
        pipeline_toml=toml("held-stream", topic, SCHEMA),
        tables_sql=COUNTED,
        flows_py=gate.code(HELD_FLOW),
    )
    with Continuously([folder]) as running:
        eventually(lambda: gate.is_full, "the stream has all slots")
        send(folder.broker, topic, [{"id": 40}])
        eventually(lambda: folder.rows("refined.counted", "n") == [41], "the view is computed")
        assert not has_rows(folder, "raw.held", 1)
        gate.open()
        eventually(lambda: has_rows(folder, "raw.held", 41), "the stream goes on")
        running.check()


def has_rows(folder: Folder, table: str, count: int) -> bool:
    is_there = table in folder.lake.names()
    return is_there and len(folder.rows(table, "id")) == count
