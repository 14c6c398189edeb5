"""Redriven rows: each is added once, and none is lost with its record."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.lake.catalog import Lake
from headrace.lake.tables import Table
from headrace.pipelines.commands import load_all, prepared, redrive
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.correcting import redrive as redriving
from headrace.pipelines.running.correcting.kept_records import PLACE, rows_at
from headrace.pipelines.running.correcting.redrive import UNFINISHED, Journal, Redriven
from headrace.pipelines.running.correcting.redrive_rounds import Limits
from headrace.pipelines.running.flows.targets import AppendTarget
from headrace.runtime import files
from headrace.testing.process import BrokerProcess
from tests.builders.lakes import written
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send, toml

SCHEMA = "id LONG, price DOUBLE"
TABLE = (
    "CREATE STREAMING TABLE trusted.o (CONSTRAINT dear EXPECT (price > {})"
    " ON VIOLATION QUARANTINE ROW) AS SELECT {} FROM {};"
)
QUARANTINE = "quarantine.trusted__o"


@pytest.fixture
def folder(tmp_path: Path, broker: BrokerProcess, spark: SparkSession) -> Folder:
    return Folder(tmp_path / "pipeline", broker, spark)


def run_with_two_refused(folder: Folder, topic: str, table: str, options: str = "") -> None:
    """Five records, of which the ones at offsets 0 and 3 are too cheap."""
    folder.write(pipeline_toml=toml("again", topic, SCHEMA) + options, tables_sql=table.format(3))
    prices = [1.0, 5.0, 5.0, 2.0, 5.0]
    send(folder.broker, topic, [{"id": n, "price": price} for n, price in enumerate(prices)])
    folder.once()
    assert folder.rows("trusted.o", "id") == [1, 2, 4]


def redriven_with_lower_price(folder: Folder, table: str) -> Redriven:
    folder.write(tables_sql=table.format(0))
    return redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)


@pytest.mark.parametrize(
    ("keeps", "ids"), [("true", [0, 10, 20, 30, 40]), ("false", [0, 1, 2, 3, 4])]
)
def test_todays_flow_runs_over_kept_bytes_and_other_rows_are_checked_unchanged(
    keeps: str, ids: list[int], folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: neither needs the records in the topic, since retention has removed them."""
    topic = make_topic()
    table = TABLE.format(
        "{}", "{} AS id, price, topic, partition, offset", "STREAM(sources.events)"
    )
    folder.write(
        pipeline_toml=toml("again", topic, SCHEMA)
        + f"[sources.events.options]\nkeepPayloads = {keeps}\n",
        tables_sql=table.format(9, "id"),
    )
    send(folder.broker, topic, [{"id": n, "price": float(n)} for n in range(5)])
    folder.once()
    with Admin(folder.broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(topic, {0: 5})
    folder.write(tables_sql=table.format(-1, "10 * id"))
    redriven = redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)
    assert redriven == Redriven(taken=5, refused=0)
    assert folder.rows("trusted.o", "id") == ids
    assert folder.rows(QUARANTINE, "offset") == []


def test_key_headers_and_time_of_a_record_are_kept_with_its_bytes(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: a flow that computes its columns from them gets them again."""
    topic = make_topic(retention_ms="-1")
    table = (
        "CREATE STREAMING TABLE trusted.o (CONSTRAINT long EXPECT (length(value) > {})"
        " ON VIOLATION QUARANTINE ROW) AS SELECT {}(CAST(key AS STRING)) AS name, topic, value,"
        " unix_seconds(timestamp) AS at, CAST(headers[0].value AS STRING) AS header,"
        " partition, offset"
        " FROM STREAM(sources.events);"
    )
    folder.write(
        pipeline_toml=f'[pipeline]\nname = "key"\n[sources.events]\ntopic = "{topic}"\n',
        tables_sql=table.format(9, "lower"),
    )
    send(folder.broker, topic, [b"x"], timestamp_ms=86_400_000, key=b"Ada", headers={"h": b"1"})
    folder.once()
    for length, name, refused in ((5, "lower", 1), (0, "upper", 0)):
        folder.write(tables_sql=table.format(length, name))
        redriven = redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)
        assert redriven == Redriven(taken=1, refused=refused)
    assert folder.rows("trusted.o", "name", "value", "at", "header") == [("ADA", b"x", 86_400, "1")]


def test_unreadable_records_that_the_topic_has_lost_are_read_by_a_corrected_schema(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: a function that filters, and a topic that no longer has the record."""
    topic = make_topic(retention_ms="-1")  # The records are of 1970: retention may come first.
    folder.write(
        pipeline_toml=toml("mended", topic, SCHEMA),
        functions_py="""
from headrace import pipelines as dp


@dp.table(name="trusted.o")
def o():
    return dp.read_stream("sources.events").where("id >= 0").select("id", "price", "timestamp")
""",
    )
    late, torn = b'{"id": 7, "price": "9.5"}', b"{torn"
    send(folder.broker, topic, [late, torn, {"id": 1, "price": 2.0}], timestamp_ms=86_400_000)
    folder.once()
    assert folder.rows(QUARANTINE, "offset") == [0, 1]
    with Admin(folder.broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(topic, {0: 3})
    folder.write(pipeline_toml=toml("mended", topic, "id LONG, price STRING"))
    folder.write(
        functions_py=(folder.path / "functions.py")
        .read_text()
        .replace('"price"', '"CAST(price AS DOUBLE) AS price"')
        .replace(".select(", ".selectExpr(")
    )
    redriven = redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)
    assert redriven == Redriven(taken=2, refused=1)
    assert folder.rows("trusted.o", "id", "price") == [(1, 2.0), (7, 9.5)]
    times = folder.rows("trusted.o", "timestamp")
    assert [time.timestamp() for time in times] == [86_400.0] * 2
    assert folder.rows(QUARANTINE, "offset", "payload") == [(1, torn)]


def remake(folder: Folder, topic: str) -> None:
    with Admin(folder.broker.bootstrap_servers) as admin:
        admin.topics.delete([topic])
        admin.topics.create([NewTopic(name=topic, partitions=1)])


def test_no_record_of_a_recreated_topic_is_mistaken_for_a_rejected_one(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: before the flow has read the new topic, and after it has read both.

    At offset 0 the new one has a good record, and at offset 2 neither can be read.
    """
    topic = make_topic()

    def write(schema: str) -> None:
        folder.write(
            pipeline_toml=toml("remade", topic, schema)
            + "[sources.events.options]\nfailOnDataLoss = false\n",
            tables_sql="CREATE STREAMING TABLE trusted.o AS SELECT CAST(id AS LONG) AS id, topic,"
            " partition, offset FROM STREAM(sources.events);",
        )

    def redriven() -> Redriven:
        return redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)

    write("id LONG")
    send(folder.broker, topic, [b'{"id": "6"}', {"id": 1}, b'{"id": "7"}'])
    folder.once()
    remake(folder, topic)
    send(folder.broker, topic, [{"id": 100}, {"id": 101}, b'{"id": "8"}'])
    assert redriven() == Redriven(taken=2, refused=2)
    assert folder.rows("trusted.o", "id") == [1]
    folder.once()
    assert folder.rows("trusted.o", "id") == [1, 100, 101]
    assert redriven() == Redriven(taken=3, refused=3)
    write("id STRING")
    assert redriven() == Redriven(taken=3, refused=0)
    assert folder.rows("trusted.o", "id") == [1, 6, 7, 8, 100, 101]
    assert folder.rows(QUARANTINE, "offset") == []


def test_rows_are_checked_unchanged_where_a_streamed_table_has_two_records_of_a_place(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """A topic was recreated, so a row of the table could belong to either record."""
    topic = make_topic()
    table = (
        "CREATE STREAMING TABLE raw.o AS SELECT id, price, topic, partition, offset"
        " FROM STREAM(sources.events);\n"
    ) + TABLE.format("{}", "{} AS id, price, topic, partition, offset", "STREAM(raw.o)")
    options = "[sources.events.options]\nfailOnDataLoss = false\n"
    folder.write(
        pipeline_toml=toml("mixed", topic, SCHEMA) + options, tables_sql=table.format(3, "id")
    )
    send(folder.broker, topic, [{"id": 1, "price": 2.0}])
    folder.once()
    remake(folder, topic)
    send(folder.broker, topic, [{"id": 2, "price": 2.0}])
    folder.once()
    folder.write(tables_sql=table.format(0, "10 * id"))
    redriven = redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)
    assert redriven == Redriven(taken=2, refused=0)
    assert folder.rows("trusted.o", "id") == [1, 2]


def test_a_changed_query_applies_to_records_with_one_row_in_the_streamed_table(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """The second record has two rows there, and a row of the first is in the target already."""
    topic = make_topic()
    table = (
        "CREATE STREAMING TABLE raw.o AS SELECT explode(parts) AS ids, topic, partition, offset"
        " FROM STREAM(sources.events);\n"
        "CREATE STREAMING TABLE trusted.o (CONSTRAINT big EXPECT (id > {})"
        " ON VIOLATION QUARANTINE ROW) AS SELECT explode({}) AS id, topic, partition, offset"
        " FROM STREAM(raw.o);"
    )
    folder.write(
        pipeline_toml=toml("onward", topic, "parts ARRAY<ARRAY<LONG>>"),
        tables_sql=table.format(4, "ids"),
    )
    send(folder.broker, topic, [{"parts": parts} for parts in ([[1, 5]], [[2], [3]], [[4]])])
    folder.once()
    assert folder.rows("trusted.o", "id") == [5]
    folder.write(tables_sql=table.format(0, "transform(ids, id -> 10 * id)"))
    redriven = redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)
    assert redriven == Redriven(taken=4, refused=0)
    assert folder.rows("trusted.o", "id") == [1, 2, 3, 5, 40]
    assert folder.rows(QUARANTINE, "offset") == []


def test_rows_of_a_table_are_found_by_their_record(spark: SparkSession, tmp_path: Path) -> None:
    """Rows without an offset, or of other topics and partitions, belong to other records."""
    places = [("a", 0, 3), ("a", 0, 4), ("a", 0, 9), ("a", 1, 3), ("b", 0, 3), ("a", 0, None)]
    kinds = (pa.string(), pa.int32(), pa.int64())
    table = Lake(tmp_path).create("raw.o", pa.schema(list(zip(PLACE, kinds, strict=True))))
    rows = [dict(zip(PLACE, place, strict=True)) for place in places]
    table.append(written(table, rows))
    wanted = [("a", 0, 3), ("a", 0, 5), ("a", 0, 9), None]
    found = rows_at(spark, table, table.version, wanted).collect()
    assert sorted(map(tuple, found)) == [("a", 0, 3), ("a", 0, 9)]
    assert rows_at(spark, table, table.version, [None]).count() == 0


def test_stored_rows_of_a_record_are_not_added_a_second_time(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """A record with one rejected row of several, and a record whose rows were all rejected."""
    topic = make_topic()
    table = (
        "CREATE STREAMING TABLE trusted.o (CONSTRAINT dear EXPECT (price > {})"
        " ON VIOLATION QUARANTINE ROW) AS SELECT explode(prices) AS price, topic, partition, offset"
        " FROM STREAM(sources.events);"
    )
    folder.write(
        pipeline_toml=toml("several", topic, "prices ARRAY<DOUBLE>"), tables_sql=table.format(3)
    )
    send(folder.broker, topic, [{"prices": [1.0, 5.0]}, {"prices": [2.0, 2.0]}])
    folder.once()
    assert folder.rows("trusted.o", "price") == [5.0]
    assert redriven_with_lower_price(folder, table) == Redriven(taken=3, refused=0)
    assert folder.rows("trusted.o", "price") == [1.0, 2.0, 2.0, 5.0]
    assert folder.rows(QUARANTINE, "rule") == []


@pytest.mark.parametrize(
    ("table", "options"),
    [
        pytest.param(
            TABLE.format(
                "{}",
                "id, price, k_topic AS topic, k_partition AS partition, k_offset AS offset",
                "STREAM(sources.events)",
            ),
            '[sources.events.options]\nmetadataPrefix = "k_"\n',
            id="by a prefix",
        ),
        pytest.param(
            "CREATE STREAMING TABLE raw.o AS SELECT id, price, topic AS kt, partition AS kp,"
            " offset AS ko FROM STREAM(sources.events);\n"
            + TABLE.format(
                "{}", "id, price, kt AS topic, kp AS partition, ko AS offset", "STREAM(raw.o)"
            ),
            "",
            id="by a table before",
        ),
        pytest.param(
            "CREATE STREAMING TABLE raw.o AS SELECT id, price, topic, partition, offset"
            " FROM STREAM(sources.events);\n"
            + TABLE.format(
                "{}",
                "a.id, a.price, a.topic, a.partition, a.offset",
                "STREAM(raw.o) a JOIN raw.o b ON a.id = b.id",
            ),
            "",
            id="not in a table that is looked up",
        ),
    ],
)
def test_rows_are_added_once_for_every_way_to_name_their_records(
    table: str, options: str, folder: Folder, make_topic: MakeTopic
) -> None:
    run_with_two_refused(folder, make_topic(), table, options)
    assert redriven_with_lower_price(folder, table) == Redriven(taken=2, refused=0)
    assert folder.rows("trusted.o", "id") == [0, 1, 2, 3, 4]
    assert folder.rows(QUARANTINE, "rule") == []


CUTS = [
    (redriving, "evaluate", "before"),  # The rounds are recorded, and nothing else.
    (AppendTarget, "write", "before"),  # The decision about each row is recorded too.
    (AppendTarget, "_commit", "before"),  # Rows that are rejected again are in quarantine.
    (AppendTarget, "write", "behind"),  # All others are in the table.
    (Table, "delete", "behind"),  # Some have left quarantine.
    (files, "unlink_if_there", "before"),  # All have.
]


class Cut(Exception):
    """The redrive is interrupted here."""


@contextmanager
def cut(owner: Any, name: str, when: str) -> Iterator[None]:
    """Interrupt a redrive before or behind a call of a function."""
    function = getattr(owner, name)

    def last(*given: Any, **more: Any) -> None:
        if when == "behind":
            function(*given, **more)
        raise Cut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, last)
        with pytest.raises(Cut):
            yield


def test_a_redrive_that_is_cut_off_at_every_step_takes_each_row_once(
    folder: Folder, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that name their records, one that does not, and one that is rejected again."""
    monkeypatch.setattr(redriving, "_PER_DELETE", 1)
    topic = make_topic()
    columns = "id, price, topic, partition, IF(id = 4, NULL, offset) AS offset"
    table = TABLE.format("{}", columns, "STREAM(sources.events)")
    folder.write(pipeline_toml=toml("cut", topic, SCHEMA), tables_sql=table.format(3))
    for prices in ({0: 1.0, 1: 5.0, 2: 2.0}, {3: 2.0, 4: 2.0}):
        send(folder.broker, topic, [{"id": n, "price": price} for n, price in prices.items()])
        folder.once()
    folder.write(tables_sql=table.format(1.5))
    (pipeline,) = load_all([folder.path], folder.overrides)
    run = prepared(folder.spark, pipeline)
    for step in CUTS:
        with cut(*step):
            redriving.redrive(run, "trusted.o")
        remove_old_versions(folder.lake.table(QUARANTINE))
    redriving.redrive(run, "trusted.o")
    assert folder.rows("trusted.o", "id") == [1, 2, 3, 4]
    assert folder.rows(QUARANTINE, "offset") == [0]


def test_an_interrupted_redrive_continues_with_the_next_round(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """Rounds of two rows, with 0 and 1 in the first; 0 is rejected again and in no later round.

    The second is interrupted when both the table and quarantine have its row. The record
    of 3 and 4 has two rows, which a limit by number alone would separate.
    """
    topic = make_topic()
    table = (
        "CREATE STREAMING TABLE trusted.o (CONSTRAINT dear EXPECT (id >= {})"
        " ON VIOLATION QUARANTINE ROW) AS SELECT explode(ids) AS id, topic, partition, offset"
        " FROM STREAM(sources.events);"
    )
    folder.write(pipeline_toml=toml("rounds", topic, "ids ARRAY<LONG>"), tables_sql=table.format(9))
    send(folder.broker, topic, [{"ids": ids} for ids in ([0], [1], [2], [3, 4], [5])])
    folder.once()
    folder.write(tables_sql=table.format(1))
    (pipeline,) = load_all([folder.path], folder.overrides)
    run, limits = prepared(folder.spark, pipeline), Limits(rows_max=2)
    with cut(Journal, "end_round", "behind"):
        redriving.redrive(run, "trusted.o", limits)
    assert folder.rows("trusted.o", "id") == [1]
    assert folder.rows(QUARANTINE, "offset") == [0, 2, 3, 3, 4]
    with cut(AppendTarget, "write", "behind"):
        redriving.redrive(run, "trusted.o", limits)
    assert folder.rows("trusted.o", "id") == [1, 2]
    assert redriving.redrive(run, "trusted.o", limits) == Redriven(taken=4, refused=0)
    assert folder.rows("trusted.o", "id") == [1, 2, 3, 4, 5]
    assert folder.rows(QUARANTINE, "offset") == [0]


def remove_old_versions(table: Table) -> None:
    """Remove the files that a vacuum removes a day later."""
    needed = {file.path for file in table.files()}
    for path in table.place.glob("*.parquet"):
        if path.name not in needed:
            path.unlink()


def test_rows_of_a_batch_that_was_cut_off_wait_until_it_is_finished(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """The batch is repeated, and may reject other rows then."""
    topic = make_topic()
    table = TABLE.format("{}", "*", "STREAM(sources.events)")
    folder.write(pipeline_toml=toml("early", topic, SCHEMA), tables_sql=table.format(3))
    send(folder.broker, topic, [{"id": n, "price": 1.0 + 4 * (n % 2)} for n in range(4)])

    def refuses(*_: object) -> int:
        raise PipelineError("the power is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AppendTarget, "_commit", refuses)
        with pytest.raises(PipelineError):
            folder.once()
    assert len(folder.rows(QUARANTINE, "offset")) == 2
    redriven = redriven_with_lower_price(folder, table)
    assert redriven == Redriven(taken=0, refused=0, left=2, reasons={UNFINISHED: 2})
    folder.once()
    assert folder.rows("trusted.o", "id") == [0, 1, 2, 3]
    assert folder.rows(QUARANTINE, "offset") == []
