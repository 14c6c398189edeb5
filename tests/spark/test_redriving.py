"""Rows out of quarantine: each comes once, and none is lost with its record."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.lake.tables import Table
from headrace.pipelines.commands import load_all, prepared, redrive
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running import redrive_fates, redriving
from headrace.pipelines.running.redrive_fates import LOST, REMADE
from headrace.pipelines.running.redrive_notes import Note
from headrace.pipelines.running.redrive_rounds import Limits
from headrace.pipelines.running.redriving import UNFINISHED, Redriven
from headrace.pipelines.running.targets import AppendTarget
from headrace.runtime import files
from headrace.testing.process import BrokerProcess
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
    """Five records, of which those at offsets 0 and 3 are too cheap."""
    folder.write(pipeline_toml=toml("again", topic, SCHEMA) + options, tables_sql=table.format(3))
    prices = [1.0, 5.0, 5.0, 2.0, 5.0]
    send(folder.broker, topic, [{"id": n, "price": price} for n, price in enumerate(prices)])
    folder.once()
    assert folder.rows("trusted.o", "id") == [1, 2, 4]


def redriven_with_lower_price(folder: Folder, table: str) -> Redriven:
    folder.write(tables_sql=table.format(0))
    return redrive(folder.path, "trusted.o", overrides=folder.overrides, spark=folder.spark)


@pytest.mark.parametrize(
    ("options", "expected", "stored"),
    [
        pytest.param(
            "failOnDataLoss = true", Redriven(taken=2, refused=0), [0, 1, 2, 3, 4], id="kept"
        ),
        pytest.param(
            "failOnDataLoss = false\nkeepPayloads = false",
            Redriven(taken=1, refused=0, left=1, reasons={LOST: 1}),
            [1, 2, 3, 4],
            id="not kept",
        ),
    ],
)
def test_a_row_whose_record_is_gone_is_made_anew_of_its_bytes_or_stays(
    options: str, expected: Redriven, stored: list[int], folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4"""
    topic = make_topic()
    table = TABLE.format("{}", "*", "STREAM(sources.events)")
    run_with_two_refused(folder, topic, table, f"[sources.events.options]\n{options}\n")
    with Admin(folder.broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(topic, {0: 2})
    assert redriven_with_lower_price(folder, table) == expected
    assert folder.rows("trusted.o", "id") == stored
    assert len(folder.rows(QUARANTINE, "offset")) == expected.left


def test_what_could_not_be_read_and_is_gone_is_read_by_a_mended_schema(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: a function that filters, and a topic that has forgotten the record."""
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


def test_no_record_of_a_topic_that_was_made_again_is_taken_for_a_refused_one(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: before the flow has seen the new topic, and when it has read both.

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


@pytest.mark.parametrize(
    ("keeps", "expected", "stored"),
    [
        ("true", Redriven(taken=2, refused=0), [0, 1, 2, 3, 4]),
        ("false", Redriven(taken=0, refused=0, left=2, reasons={REMADE: 2}), [1, 2, 4]),
    ],
    ids=["kept", "not kept"],
)
def test_a_topic_that_is_made_again_during_a_redrive_is_told_and_then_not_read(
    keeps: str, expected: Redriven, stored: list[int], folder: Folder, make_topic: MakeTopic
) -> None:
    """The records were read, and nobody can tell any more of which topic they were."""
    topic = make_topic()
    table = TABLE.format("{}", "*", "STREAM(sources.events)")
    options = f"[sources.events.options]\nkeepPayloads = {keeps}\n"
    run_with_two_refused(folder, topic, table, options)

    def read_and_remake(*given: Any) -> Any:
        rows = evaluate(*given)
        remake(folder, topic)
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redriving, "evaluate", read_and_remake)
        with pytest.raises(PipelineError, match="redrive again"):
            redriven_with_lower_price(folder, table)
    send(folder.broker, topic, [{"id": 100 + n, "price": 5.0} for n in range(4)])
    assert redriven_with_lower_price(folder, table) == expected
    assert folder.rows("trusted.o", "id") == stored
    assert len(folder.rows(QUARANTINE, "offset")) == expected.left


def test_rows_are_judged_as_they_were_where_a_table_before_has_two_records_of_a_place(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """A topic was made again, and what is read now of the table could be of either record."""
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


def test_rows_of_a_record_that_are_stored_already_do_not_come_twice(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """A record of several rows, of which one was refused; and one that was refused whole."""
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
def test_rows_come_once_however_their_input_names_their_records(
    table: str, options: str, folder: Folder, make_topic: MakeTopic
) -> None:
    run_with_two_refused(folder, make_topic(), table, options)
    assert redriven_with_lower_price(folder, table) == Redriven(taken=2, refused=0)
    assert folder.rows("trusted.o", "id") == [0, 1, 2, 3, 4]
    assert folder.rows(QUARANTINE, "rule") == []


CUTS = [
    (redriving, "evaluate", "before"),  # Rows are noted, and nothing else.
    (AppendTarget, "write", "before"),  # What becomes of them is noted too.
    (AppendTarget, "_commit", "before"),  # Those that are refused again are in quarantine.
    (AppendTarget, "write", "behind"),  # Those that are made anew are in the table.
    (AppendTarget, "write", "behind"),  # So are those that are judged as they were.
    (Table, "delete", "behind"),  # Some have left quarantine.
    (files, "unlink_if_there", "before"),  # All have.
]


class Cut(Exception):
    """The redrive ends here."""


@contextmanager
def cut(owner: Any, name: str, when: str) -> Iterator[None]:
    """Let a function be the last that is called, or the first that is not."""
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
    """Rows that name their records and one that does not, and one that is refused again."""
    monkeypatch.setattr(redrive_fates, "_PER_DELETE", 1)
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


def test_a_redrive_that_is_cut_off_between_rounds_goes_on_with_the_next(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """Rounds of two rows, with 0 and 1 in the first; 0 is refused again, which no round takes up.

    The second is cut off in its midst, when the table has its row and quarantine too. The record
    of 3 and 4 makes two rows, and would be cut in half by their number alone.
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
    with cut(Note, "end_round", "behind"):
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
    """What vacuum does a day later."""
    needed = {file.path for file in table.files()}
    for path in table.place.glob("*.parquet"):
        if path.name not in needed:
            path.unlink()


def test_rows_of_a_batch_that_was_cut_off_wait_until_it_is_finished(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """It comes again, and may have other rows to refuse by then."""
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
