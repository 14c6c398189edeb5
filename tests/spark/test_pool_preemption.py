"""Concurrent batch runs and streams: neither waits for the end of the other.

And streams of different priority: those of a higher one come first.
"""

from collections import Counter
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.spark.pools import BATCH, PATIENT, STREAMS, URGENT
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Continuously, Folder, eventually, send, toml
from tests.spark.source_topics import produce

SCHEMA = "id LONG"
SLOTS = 2
"""The pools of the session that tests share."""
HOLDING = '''
import os
import time
from pathlib import Path

from pyspark.sql import DataFrame

GATE = Path({gate!r})


def held(batches):
    """Hold a slot until the gate exists; a file shows that the task has started."""
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

PRIORITIES = {"urgent": 1, "usual": 0, "patient": -1}
"""The priorities of the sources, by their names."""
SOURCE = """
[sources.{name}]
topic = "{topic}"
priority = {priority}
format = "json"
schema = "id LONG"
options = {{ minPartitions = "{tasks}" }}
"""
NOTED = """
import time
from pathlib import Path

from pyspark import TaskContext

from headrace import pipelines as dp

START, ORDER = Path({start!r}), Path({order!r})


def noted(name):
    def note(batches):
        while not START.exists():
            time.sleep(0.05)
        with ORDER.open("a") as order:
            order.write(f"{{name}}/{{TaskContext.get().partitionId()}} ")
        yield from batches

    return dp.read_stream("sources." + name).select("id").mapInArrow(note, "id long")


@dp.table(name="raw.urgent")
def urgent():
    return noted("urgent")


@dp.table(name="raw.usual")
def usual():
    return noted("usual")


@dp.table(name="raw.patient")
def patient():
    return noted("patient")
"""
TASKS = 4
"""The number for each of these flows."""
STREAM_POOLS = (URGENT, STREAMS, PATIENT)


class Gate:
    """A file that tasks wait for."""

    def __init__(self, place: Path) -> None:
        self.path = place / "gate"

    @property
    def is_full(self) -> bool:
        """Return whether as many tasks wait as there are slots, so that no other can run."""
        return len(list(self.path.parent.glob("held.*"))) >= SLOTS

    def code(self, more: str) -> str:
        return HOLDING.format(gate=str(self.path)) + more

    def open(self) -> None:
        self.path.touch()

    def __enter__(self) -> None:
        """Begin with a closed gate; no task waits yet."""

    def __exit__(self, *_: object) -> None:
        """Release the tasks after any failure: a run does not end while its tasks wait."""
        self.open()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def folder(tmp_path: Path, broker: BrokerProcess, spark: SparkSession) -> Folder:
    assert spark.sparkContext.defaultParallelism == SLOTS
    return Folder(tmp_path / "pipeline", broker, spark)


def test_a_batch_run_whose_tasks_do_not_end_does_not_delay_streams(
    folder: Folder, make_topic: MakeTopic, gate: Gate
) -> None:
    """ARC-5: batch and streaming are isolated."""
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("held-batch", topic, SCHEMA),
        tables_sql=NUMBERS,
        views_py=gate.code(HELD_VIEW),
    )
    with Continuously([folder]) as running, gate:
        eventually(lambda: gate.is_full, "the batch run has all slots")
        for count in (1, 2):
            send(folder.broker, topic, [{"id": count}])
            eventually(partial(has_rows, folder, "raw.numbers", count), f"{count} rows")
        assert not has_rows(folder, "refined.held", 1)
        gate.open()
        eventually(lambda: has_rows(folder, "refined.held", 8), "the batch run ends as well")
        running.check()


def test_a_stream_whose_tasks_do_not_end_does_not_delay_batch_runs(
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
    with Continuously([folder]) as running, gate:
        eventually(lambda: gate.is_full, "the stream has all slots")
        send(folder.broker, topic, [{"id": 40}])
        eventually(lambda: folder.rows("refined.counted", "n") == [41], "the view is computed")
        assert not has_rows(folder, "raw.held", 1)
        gate.open()
        eventually(lambda: has_rows(folder, "raw.held", 41), "the stream goes on")
        running.check()


def test_a_source_of_a_higher_priority_has_its_tasks_run_before_those_of_others(
    folder: Folder, make_topic: MakeTopic, gate: Gate, tmp_path: Path
) -> None:
    """ARC-7: also while a batch run has one of two slots, and does not give it back."""
    topics = {name: make_topic(name, partitions=TASKS) for name in PRIORITIES}
    start, order = tmp_path / "start", tmp_path / "order"
    folder.write(
        pipeline_toml='[pipeline]\nname = "ranked"\n'
        + "".join(
            SOURCE.format(name=name, topic=topics[name], priority=priority, tasks=TASKS)
            for name, priority in PRIORITIES.items()
        ),
        views_py=gate.code(HELD_VIEW),
        flows_py=NOTED.format(start=str(start), order=str(order)),
    )
    with Continuously([folder]) as running, gate:
        eventually(lambda: gate.is_full, "the batch run has all slots")
        for topic in topics.values():
            records = [{"value": b'{"id": 1}', "partition": number} for number in range(TASKS)]
            produce(folder.broker.bootstrap_servers, topic, records)
        eventually(lambda: all(map(partial(has_tasks, folder.spark), STREAM_POOLS)), "all wait")
        start.touch()
        eventually(lambda: len(noted_in(order)) == TASKS * len(topics), "all tasks have begun")
        gate.open()
        running.check()
    held, *rest = noted_in(order)
    assert rest == sorted(rest, key=list(PRIORITIES).index)
    assert Counter([held, *rest]) == dict.fromkeys(PRIORITIES, TASKS)


def has_tasks(spark: SparkSession, pool: str) -> bool:
    context: Any = spark.sparkContext._jsc.sc()
    return int(context.getPoolForName(pool).get().schedulableQueue().size()) > 0


def noted_in(order: Path) -> list[str]:
    """Return the owners of started tasks, in order; a preempted task starts again."""
    tasks = order.read_text().split() if order.exists() else []
    return [task.partition("/")[0] for task in dict.fromkeys(tasks)]


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 6, 8, 16, 64])
def test_a_higher_priority_has_more_of_any_number_of_slots(spark: SparkSession, slots: int) -> None:
    """ARC-7: by Spark's own rule; two pools with unbounded demand share two slots equally."""
    urgent, usual = shared_out(spark, slots, URGENT, STREAMS)
    assert urgent > usual or slots == 2
    for higher in (URGENT, STREAMS):
        more, less = shared_out(spark, slots, higher, PATIENT)
        assert more > less
    urgent, usual, batch = shared_out(spark, slots, URGENT, STREAMS, BATCH)
    assert urgent >= max(usual, batch)
    assert min(usual, batch) >= 1 or slots <= SLOTS


def shared_out(spark: SparkSession, slots: int, *busy: str) -> list[int]:
    """Return the number of slots of each pool while all of them have waiting tasks."""
    context: Any = spark.sparkContext._jsc.sc()
    jvm: Any = spark.sparkContext._jvm
    scheduler = jvm.org.apache.spark.scheduler
    is_before = scheduler.FairSchedulingAlgorithm().comparator
    pools = []
    for name in busy:
        real = context.getPoolForName(name).get()
        rules = (scheduler.SchedulingMode.FAIR(), real.minShare(), real.weight())
        pools.append(scheduler.Pool(name, *rules))
    for _ in range(slots):
        first = reduce(lambda one, other: one if is_before(one, other) else other, pools)
        first.increaseRunningTasks(1)
    return [pool.runningTasks() for pool in pools]


def has_rows(folder: Folder, table: str, count: int) -> bool:
    is_there = table in folder.lake.names()
    return is_there and len(folder.rows(table, "id")) == count
