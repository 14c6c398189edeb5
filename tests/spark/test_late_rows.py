"""Tables kept by key and late rows: from quarantine, and from before a flow's start."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.pipelines.commands import backfill, redrive
from headrace.pipelines.problems import PipelineError
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send, toml

SCHEMA = "id LONG, city STRING, seq LONG, op STRING"
BY_KEY = (
    "CREATE STREAMING TABLE trusted.c (CONSTRAINT known EXPECT (city IN ({}))"
    " ON VIOLATION QUARANTINE ROW) KEYS (id) {} AS"
    " SELECT id, city, seq{} FROM STREAM(sources.events);"
)
BY_CHANGES = """
CREATE STREAMING TABLE trusted.c (CONSTRAINT known EXPECT (city IN ({}))
  ON VIOLATION QUARANTINE ROW);
CREATE TEMPORARY VIEW events AS SELECT id, city, seq, op{} FROM STREAM(sources.events);
CREATE FLOW f AS AUTO CDC INTO trusted.c FROM STREAM(events) KEYS (id)
  APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq COLUMNS * EXCEPT (op{}) STORED AS SCD TYPE 1;
"""
PLACE = ", topic, partition, offset"


def change(number: int, city: str, seq: int, op: str = "u") -> dict[str, object]:
    return {"id": number, "city": city, "seq": seq, "op": op}


@pytest.fixture
def folder(tmp_path: Path, broker: BrokerProcess, spark: SparkSession) -> Folder:
    return Folder(tmp_path / "pipeline", broker, spark)


@pytest.mark.parametrize("place", ["", PLACE])
def test_a_row_out_of_quarantine_does_not_replace_a_newer_one(
    place: str, folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    order = "SEQUENCE BY seq"
    folder.write(
        pipeline_toml=toml("keyed", topic, SCHEMA), tables_sql=BY_KEY.format("'Rome'", order, place)
    )
    send(folder.broker, topic, [change(1, "Oslo", 1), change(1, "Rome", 2), change(2, "Oslo", 5)])
    folder.once()
    folder.write(tables_sql=BY_KEY.format("'Rome', 'Oslo'", order, place))
    redriven = redrive(folder.path, "trusted.c", overrides=folder.overrides, spark=folder.spark)
    assert (redriven.taken, redriven.refused) == (2, 0)
    assert folder.rows("trusted.c", "id", "city") == [(1, "Rome"), (2, "Oslo")]
    assert folder.rows("quarantine.trusted__c", "rule") == []


@pytest.mark.parametrize("place", ["", PLACE])
def test_change_events_out_of_quarantine_find_their_place(
    place: str, folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("changes", topic, SCHEMA),
        tables_sql=BY_CHANGES.format("'Rome'", place, place),
    )
    sent = [change(1, "Oslo", 1), change(1, "Rome", 2), change(2, "Rome", 1)]
    send(folder.broker, topic, [*sent, change(2, "Oslo", 3, "d"), change(3, "Oslo", 1)])
    folder.once()
    assert folder.rows("trusted.c", "id") == [1, 2]
    folder.write(tables_sql=BY_CHANGES.format("'Rome', 'Oslo'", place, place))
    redriven = redrive(folder.path, "trusted.c", overrides=folder.overrides, spark=folder.spark)
    assert (redriven.taken, redriven.refused) == (3, 0)
    assert folder.rows("trusted.c", "id", "city") == [(1, "Rome"), (3, "Oslo")]


def test_a_backfill_does_not_replace_newer_rows(folder: Folder, make_topic: MakeTopic) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("late", topic, SCHEMA)
        + '[sources.events.options]\nstartingOffsets = "latest"\n',
        tables_sql="CREATE STREAMING TABLE trusted.c KEYS (id) SEQUENCE BY seq AS"
        " SELECT id, city, seq FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [change(1, "Oslo", 1), change(2, "Oslo", 1), change(2, "Bonn", 2)])
    folder.once()
    send(folder.broker, topic, [change(1, "Rome", 2)])
    folder.once()
    assert folder.rows("trusted.c", "id", "city") == [(1, "Rome")]
    backfill(folder.path, "trusted.c", overrides=folder.overrides, spark=folder.spark)
    assert folder.rows("trusted.c", "id", "city") == [(1, "Rome"), (2, "Bonn")]


def test_a_delete_removes_its_row_even_if_its_own_date_is_out_of_range(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """No partition could have that date; a row with it would go to quarantine."""
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("far", topic, SCHEMA),
        tables_sql="""
        CREATE STREAMING TABLE trusted.c (CONSTRAINT known EXPECT (id > 0)
          ON VIOLATION QUARANTINE ROW) PARTITIONED BY (day);
        CREATE TEMPORARY VIEW events AS SELECT id, seq, op,
          date_add(DATE '2026-01-01', IF(city = 'far', 110000000, 0)) AS day
          FROM STREAM(sources.events);
        CREATE FLOW f AS AUTO CDC INTO trusted.c FROM STREAM(events) KEYS (id)
          APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq COLUMNS * EXCEPT (op);
        """,
    )
    send(folder.broker, topic, [change(1, "near", 1), change(2, "near", 1)])
    folder.once()
    send(folder.broker, topic, [change(1, "far", 2, "d"), change(3, "far", 2)])
    folder.once()
    assert folder.rows("trusted.c", "id") == [2]
    assert len(folder.rows("quarantine.trusted__c", "rule")) == 1


def test_without_a_sequence_late_rows_are_rejected_with_advice(
    folder: Folder, make_topic: MakeTopic
) -> None:
    folder.write(
        pipeline_toml=toml("unordered", make_topic(), SCHEMA),
        tables_sql=BY_KEY.format("'Rome'", "", ""),
    )
    folder.once()
    for command in (redrive, backfill):
        with pytest.raises(PipelineError, match="SEQUENCE BY"):
            command(folder.path, "trusted.c", overrides=folder.overrides, spark=folder.spark)


TOTALS = """
CREATE STREAMING TABLE refined.c KEYS (city) SEQUENCE BY last AS
SELECT city, count(*) AS n, max(seq) AS last FROM STREAM(sources.events) GROUP BY city;
"""
ONCE_EACH = """
from headrace import pipelines as dp


@dp.table(name="refined.c")
def c():
    return dp.read_stream("sources.events").dropDuplicates(["city"])
"""


@pytest.mark.parametrize("files", [{"tables_sql": TOTALS}, {"tables_py": ONCE_EACH}])
def test_a_backfill_of_rows_from_several_records_is_rejected(
    files: dict[str, str], folder: Folder, make_topic: MakeTopic
) -> None:
    """Totals of older records alone would replace the totals of all records, or duplicate them."""
    folder.write(
        pipeline_toml=toml("totals", make_topic(), SCHEMA)
        + '[sources.events.options]\nstartingOffsets = "latest"\n',
        **files,
    )
    with pytest.raises(PipelineError, match=r"several records each .* replay the pipeline"):
        backfill(folder.path, "refined.c", overrides=folder.overrides, spark=folder.spark)


def test_batches_merged_by_tasks_result_in_the_same_tables(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4, ARC-2: rows by key, changes and a merged view, none of them merged by the driver."""
    topic = make_topic()
    source = toml("tasks", topic, SCHEMA)
    folder.write(
        pipeline_toml=source.replace("[sources", "driver_rows_max = 0\n[sources", 1),
        tables_sql="""
        CREATE STREAMING TABLE raw.c AS SELECT id, city, seq, op FROM STREAM(sources.events);
        CREATE STREAMING TABLE trusted.newest KEYS (id) SEQUENCE BY seq AS
          SELECT id, city, seq FROM STREAM(raw.c);
        CREATE STREAMING TABLE trusted.past;
        CREATE FLOW past AS AUTO CDC INTO trusted.past FROM STREAM(raw.c) KEYS (id)
          APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq COLUMNS * EXCEPT (op) STORED AS SCD TYPE 2;
        CREATE MERGED VIEW refined.cities MERGE (n SUM, last MAX) AS
          SELECT city, count(*) AS n, max(seq) AS last FROM STREAM(raw.c) GROUP BY city;
        """,
    )
    send(folder.broker, topic, [change(1, "Rome", 1), change(1, "Oslo", 5), change(2, "Oslo", 1)])
    folder.once()
    send(folder.broker, topic, [change(1, "Rome", 3), change(2, "Rome", 4, "d")])
    folder.once()
    assert folder.rows("trusted.newest", "id", "city") == [(1, "Oslo"), (2, "Rome")]
    assert folder.rows("trusted.past", "id", "__START_AT", "city", "__END_AT") == [
        (1, 1, "Rome", 3),
        (1, 3, "Rome", 5),
        (1, 5, "Oslo", None),
        (2, 1, "Oslo", 4),
    ]
    assert folder.rows("refined.cities", "city", "n", "last") == [("Oslo", 2, 5), ("Rome", 3, 4)]


def test_tasks_reject_a_batch_without_a_key_with_the_message_of_the_driver(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    source = toml("null", topic, SCHEMA)
    folder.write(
        pipeline_toml=source.replace("[sources", "driver_rows_max = 0\n[sources", 1),
        tables_sql="CREATE STREAMING TABLE trusted.c KEYS (id) SEQUENCE BY seq AS"
        " SELECT id, city, seq FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [{"id": 1, "city": "Rome"}])
    with pytest.raises(Exception, match=r"1 of 1 rows have a null sequence \(column seq\)"):
        folder.once()
