"""Batches by key, merged by the driver and by tasks, result in the same rows."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.lake.applied_changes import history_name, history_schema, target_schema
from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.lake.upsert_decisions import Upsert
from headrace.pipelines.model import Changes
from headrace.pipelines.running.flows import targets
from headrace.pipelines.running.flows.intake import Intake
from headrace.pipelines.running.flows.targets import ChangesTarget, KeyedTarget
from headrace.pipelines.running.tables.places import TablePlace
from headrace.spark.tables.distributed_merges import apply_changes_by_tasks
from tests.builders.lakes import appended

NAME = "trusted.t"
LINEAGE = Lineage(flow="f")
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("day", pa.date32()),
        ("seq", pa.int64()),
        ("n", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ]
)
EVENTS = pa.schema(
    [("key", pa.string()), ("seq", pa.int64()), ("value", pa.string()), ("op", pa.string())]
)
WAYS = {"driver": 1_000_000, "tasks": 0}
"""The largest number of rows that the driver merges."""


def keyed_rows(rng: random.Random, count: int) -> pa.Table:
    """Rows of keys that are there once; a null is a key too."""
    keys = rng.sample([None, *(f"k{n}" for n in range(40))], count)
    rows = [
        {
            "key": key,
            "day": None if key is None else rng.choice([1, 2]),
            "seq": rng.randrange(5),
            "n": rng.choice([None, rng.randrange(100)]),
            "at": rng.randrange(10**15),
            "tags": [("a", [rng.randrange(9)])],
        }
        for key in keys
    ]
    columns = {
        field.name: pa.array(
            [row[field.name] for row in rows],
            pa.int32() if field.name == "day" else field.type,
        ).cast(field.type)
        for field in SCHEMA
    }
    return pa.table(columns, schema=SCHEMA)


def event_rows(rng: random.Random, count: int) -> pa.Table:
    rows = [
        {
            "key": f"k{rng.randrange(6)}",
            "seq": rng.randrange(12),
            "value": rng.choice("xyz"),
            "op": rng.choice("uuud"),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def keyed(root: Path, how: Upsert, rows_max: int, schema: pa.Schema = SCHEMA) -> KeyedTarget:
    by = ["day"] if "day" in how.keys else []
    Lake(root).create(NAME, schema, partition_by=by)
    return KeyedTarget(Intake(TablePlace(str(root), NAME, 1), None, "f"), how, rows_max)


def changed(root: Path, scd_type: int, rows_max: int) -> ChangesTarget:
    lake = Lake(root)
    lake.create(
        NAME,
        target_schema(EVENTS, sequence_by="seq", scd_type=scd_type, except_columns=["op", "seq"]),
    )
    lake.create(history_name(NAME), history_schema(EVENTS, keys=["key"], sequence_by="seq"))
    return ChangesTarget(
        Intake(TablePlace(str(root), NAME, 1), None, "f"),
        TablePlace(str(root), history_name(NAME), 1),
        Changes(("key",), "seq", "op = 'd'", scd_type),
        rows_max,
    )


def content(table: Table) -> list[str]:
    return sorted(map(repr, table.rows().to_pylist()))


def feed(
    spark: SparkSession,
    made: dict[str, KeyedTarget] | dict[str, ChangesTarget],
    batches: list[pa.Table],
) -> dict[str, list[list[str]]]:
    """Return the rows of each way's table after each batch."""
    seen: dict[str, list[list[str]]] = {way: [] for way in made}
    for number, rows in enumerate(batches):
        for way, target in made.items():
            target.write(spark.createDataFrame(rows), Token("w", number), LINEAGE)
            seen[way].append(content(target.intake.place.table))
    return seen


@pytest.mark.parametrize(
    ("how", "columns"),
    [
        (Upsert(("key", "day")), SCHEMA.names),
        (Upsert(("key", "day"), sequence="seq"), SCHEMA.names),
        (
            Upsert(("key",), merge={"n": "sum", "seq": "min", "at": "max"}),
            ["key", "seq", "n", "at"],
        ),
    ],
    ids=["replaced", "by sequence", "merged"],
)
def test_tasks_merge_a_batch_by_key_as_the_driver_does(
    how: Upsert, columns: list[str], tmp_path: Path, spark: SparkSession
) -> None:
    rng = random.Random(3)
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    batches = [keyed_rows(rng, count).select(columns) for count in (20, 25, 0, 30)]
    made = {way: keyed(tmp_path / way, how, rows, schema) for way, rows in WAYS.items()}
    seen = feed(spark, made, batches)
    assert seen["tasks"] == seen["driver"]
    assert len(seen["driver"][-1]) > 30


@pytest.mark.parametrize("scd_type", [1, 2])
def test_tasks_apply_changes_as_the_driver_does(
    scd_type: int, tmp_path: Path, spark: SparkSession
) -> None:
    """ARC-4: late events, deletes and repeated events, merged by both."""
    rng = random.Random(scd_type)
    batches = [event_rows(rng, count) for count in (12, 20, 15)]
    made = {way: changed(tmp_path / way, scd_type, rows) for way, rows in WAYS.items()}
    seen = feed(spark, made, [*batches, batches[0]])
    histories = {way: content(target.history.table) for way, target in made.items()}
    assert seen["tasks"] == seen["driver"]
    assert histories["tasks"] == histories["driver"]


class Crash(Exception):
    """The driver is gone before this commit."""


@pytest.mark.parametrize("scd_type", [1, 2])
def test_a_crash_between_the_commits_of_tasks_changes_nothing(
    scd_type: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    batches = [event_rows(rng, 15) for _ in range(2)]
    made = {way: changed(tmp_path / way, scd_type, rows) for way, rows in WAYS.items()}
    feed(spark, {"driver": made["driver"]}, batches)
    tasks = made["tasks"]
    dies_at_the_target(monkeypatch, tasks.intake.place.table)
    for number, rows in enumerate(batches):
        frame = spark.createDataFrame(rows)
        with pytest.raises(Crash):
            tasks.write(frame, Token("w", number), LINEAGE)
        tasks.write(frame, Token("w", number), LINEAGE)
    assert content(tasks.intake.place.table) == content(made["driver"].intake.place.table)


def dies_at_the_target(monkeypatch: pytest.MonkeyPatch, target: Table) -> None:
    """Let every other commit of a target, which is the last, fail; the first one too."""
    commit: Callable[..., int] = target.exchange
    turns = iter(range(1_000))

    def exchange(*given: Any, **more: Any) -> int:
        if next(turns) % 2 == 0:
            raise Crash
        return commit(*given, **more)

    monkeypatch.setattr(target, "exchange", exchange)


def test_tasks_merge_again_after_a_concurrent_commit(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("key", pa.string()), ("n", pa.int64())])
    target = keyed(tmp_path, Upsert(("key",), merge={"n": "sum"}), 0, schema)
    table = target.intake.place.table
    exchange = table.exchange

    def late(*given: Any, **more: Any) -> int:
        monkeypatch.undo()
        appended(Table(NAME, table.place), [{"key": "a", "n": 5}])
        return exchange(*given, **more)

    monkeypatch.setattr(table, "exchange", late)
    rows = pa.table({"key": ["a", "b"], "n": [1, 1]}, schema=schema)
    target.write(spark.createDataFrame(rows), Token("w", 0), LINEAGE)
    assert content(table) == ["{'key': 'a', 'n': 6}", "{'key': 'b', 'n': 1}"]


def test_a_batch_by_tasks_is_one_commit_with_token_and_lineage(
    tmp_path: Path, spark: SparkSession
) -> None:
    schema = pa.schema([("key", pa.int64()), ("n", pa.int64())])
    target = keyed(tmp_path, Upsert(("key",)), 0, schema)
    for batch in range(2):
        rows = spark.range(0, 2_000, 1, 3).selectExpr("id AS key", f"{batch} AS n")
        target.write(rows, Token("w", batch), LINEAGE)
    table = target.intake.place.table
    files = {file.path for file in table.files()}
    assert table.version == 2
    assert table.history.lineage() == LINEAGE
    assert table.has(Token("w", 1))
    assert table.rows(where="n = 1").num_rows == 2_000
    assert not list((tmp_path / "_headrace" / "merging").rglob("*.parquet"))
    assert files <= {path.name for path in table.place.glob("*.parquet")}


def test_few_events_that_meet_many_rows_are_left_to_tasks(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {way: changed(tmp_path / way, 2, rows) for way, rows in WAYS.items()}
    rng = random.Random(9)
    batches = [event_rows(rng, 12), event_rows(rng, 3)]
    merged: list[int] = []

    def counted(*given: Any) -> int:
        merged.append(1)
        return apply_changes_by_tasks(*given)

    monkeypatch.setattr("headrace.lake.applied_changes.READ_BYTES_MAX", 50)
    monkeypatch.setattr(targets, "apply_changes_by_tasks", counted)
    seen = feed(spark, {"driver": made["driver"]}, batches)
    monkeypatch.setattr("headrace.lake.applied_changes.READ_BYTES_MAX", 1 << 20)
    sure = feed(spark, {"driver": replace(made["tasks"], driver_rows_max=100)}, batches)
    assert merged == [1]
    assert seen["driver"] == sure["driver"]
