"""Rows out of quarantine: each comes once, and none is lost with its record."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.client.admin import Admin
from headrace.pipelines.commands import redrive
from headrace.pipelines.running.redrive_fates import LOST
from headrace.pipelines.running.redriving import Redriven
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


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_row_whose_record_is_gone_stays_in_quarantine_with_its_bytes(
    fails: str, folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    table = TABLE.format("{}", "*", "STREAM(sources.events)")
    options = f"[sources.events.options]\nfailOnDataLoss = {fails}\n"
    run_with_two_refused(folder, topic, table, options)
    with Admin(folder.broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(topic, {0: 2})
    redriven = redriven_with_lower_price(folder, table)
    assert redriven == Redriven(taken=1, refused=0, left=1, reasons={LOST: 1})
    assert folder.rows("trusted.o", "id") == [1, 2, 3, 4]
    assert folder.rows(QUARANTINE, "offset", "payload") == [(0, b'{"id": 0, "price": 1.0}')]


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
