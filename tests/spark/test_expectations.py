"""Expectations on rows and batches, evaluated by Spark."""

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import DataFrame, SparkSession

from headrace.pipelines.commands import MetricsPort, status
from headrace.pipelines.model import (
    Expectation,
    Freshness,
    RowCount,
    RowRule,
    Rule,
    TableRule,
    UniqueKey,
    Violation,
)
from headrace.pipelines.running.errors import ExpectationFailed, FlowsFailed
from headrace.pipelines.running.flows.expectations import RowChecks, check_table_rules, with_flags
from headrace.pipelines.status import PipelineStatus
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Continuously, Folder, JumpingClock, eventually, send, toml

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
YEAR_262143 = 95_026_237.0
"""In days since 1970."""
ROWS = "SELECT TIMESTAMP '2026-03-01 11:59:00Z' AS at, id AS n FROM range(3)"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (Freshness("at", 61), None),
        (Freshness("at", 59), "the newest at is 60 s old"),
        (Freshness("CAST(NULL AS TIMESTAMP)", 59), "has no value"),
        (RowCount(3, 3), None),
        (RowCount(4, None), "the batch has 3 rows"),
        (RowCount(0, 2), "the batch has 3 rows"),
        (TableRule("sum(n) = 3"), None),
        (TableRule("max(n) > 2"), "max(n) > 2 is False"),
    ],
)
def test_a_batch_is_judged_as_a_whole(rule: Rule, problem: str | None, spark: SparkSession) -> None:
    expected = [Expectation("e", rule, Violation.WARN)]
    found = check_table_rules(spark.sql(ROWS), expected, "raw.t", NOON).warnings
    assert [text.partition("'e': ")[2].endswith(problem or "-") for text in found] == [True] * (
        problem is not None
    )


def test_a_batch_that_breaks_a_failing_rule_is_rejected(spark: SparkSession) -> None:
    expected = [Expectation("e", RowCount(4, None), Violation.FAIL)]
    with pytest.raises(ExpectationFailed, match="nothing of this batch was written"):
        check_table_rules(spark.sql(ROWS), expected, "raw.t", NOON)


@pytest.fixture
def elsewhere(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python, the JVM and its session in the time zone of New York."""
    setting, zones = "spark.sql.session.timeZone", cast("Any", spark._jvm).java.util.TimeZone
    usual, usual_setting = zones.getDefault(), spark.conf.get(setting)
    assert usual_setting is not None
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        zones.setDefault(zones.getTimeZone("America/New_York"))
        spark.conf.set(setting, "America/New_York")
        yield
        spark.conf.set(setting, usual_setting)
        zones.setDefault(usual)
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_freshness_does_not_depend_on_where_the_machine_is(spark: SparkSession) -> None:
    rows = spark.sql("SELECT TIMESTAMP '2026-03-01 11:59:00Z' AS at")
    assert rows.collect()[0]["at"] == dt.datetime(2026, 3, 1, 6, 59), (
        "Spark returns New York's time"
    )
    fresh, stale = (
        check_table_rules(
            rows, [Expectation("fresh", Freshness("at", age_s), Violation.WARN)], "raw.t", NOON
        ).warnings
        for age_s in (61, 59)
    )
    assert fresh == []
    assert stale == ["raw.t breaks the expectation 'fresh': the newest at is 60 s old"]


def test_keys_are_checked_last_and_only_among_rows_that_keep_all_other_rules(
    spark: SparkSession,
) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES (0, 1, 1, 0.0), (1, 1, 1, 5.0), (2, 1, 2, 5.0), (3, 3, 2, 5.0)"
        " AS t(offset, id, other, price)"
    )
    expected = [
        Expectation("one id", UniqueKey(("id",)), Violation.DROP),
        Expectation("one other", UniqueKey(("other",)), Violation.DROP),
        Expectation("dear", RowRule("price > 1"), Violation.QUARANTINE),
    ]
    flagged = with_flags(rows, RowChecks.of(expected, "raw.t", "f")).orderBy("offset")
    flags = [tuple(row[f"_broken_{number}"] for number in range(3)) for row in flagged.collect()]
    assert flags == [
        (False, False, True),
        (False, False, False),
        (True, False, False),
        (False, False, False),
    ]


def test_a_row_whose_other_key_the_table_has_does_not_block_a_row_with_its_key(
    spark: SparkSession,
) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES (0, 1, 7), (1, 1, 8), (2, 1, 9), (3, 2, 8) AS t(offset, id, other)"
    )
    expected = [
        Expectation("one id", UniqueKey(("id",)), Violation.DROP),
        Expectation("one other", UniqueKey(("other",)), Violation.QUARANTINE),
    ]
    known: dict[tuple[str, ...], DataFrame] = {("other",): spark.sql("SELECT 7 AS other")}
    flagged = with_flags(rows, RowChecks.of(expected, "raw.t", "f"), known).orderBy("offset")
    assert [(row["_broken_0"], row["_broken_1"]) for row in flagged.collect()] == [
        (False, True),
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_rejected_row_does_not_block_a_row_with_its_key(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("unique", topic, "id LONG, price DOUBLE"),
        tables_py="""
from headrace import pipelines as dp


@dp.table(name="trusted.o")
@dp.expect_or_quarantine("sensible", dp.between("price", 0.01, 100000))
@dp.expect_unique("id")
def o():
    return dp.read_stream("sources.events")
""",
    )
    send(broker, topic, [{"id": 1, "price": 0}, {"id": 1, "price": 5.0}, {"id": 1, "price": 6.0}])
    folder.once()
    send(broker, topic, [{"id": 1, "price": 7.0}, {"id": 2, "price": 0}, {"id": 2, "price": 8.0}])
    folder.once()
    assert folder.rows("trusted.o", "id", "price") == [(1, 5.0), (2, 8.0)]
    assert folder.rows("quarantine.trusted__o", "rule") == ["sensible", "sensible"]


def test_unreadable_and_unpartitionable_records_are_quarantined_for_any_query(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-4: a bad record stops no flow, such as a date that no table can be partitioned by."""
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("bad", topic, "id LONG, price DOUBLE") + 'where = "price > 0"\n',
        tables_sql="""
        CREATE STREAMING TABLE staging.named AS SELECT id, price FROM STREAM(sources.events);
        CREATE STREAMING TABLE staging.chosen
          AS SELECT id FROM STREAM(sources.events) WHERE price > 1;
        CREATE STREAMING TABLE staging.whole
          AS SELECT * FROM STREAM(sources.events) WHERE price > 1;
        CREATE TEMPORARY VIEW dated
          AS SELECT id, date_from_unix_date(int(price)) AS day FROM STREAM(sources.events);
        CREATE STREAMING TABLE staging.daily PARTITIONED BY (day) AS SELECT * FROM STREAM(dated);
        CREATE STREAMING TABLE staging.keyed PARTITIONED BY (day) KEYS (id)
          AS SELECT * FROM STREAM(dated);
        """,
    )
    send(broker, topic, [{"id": 1, "price": 5.0}, b"not json", {"id": 2, "price": -1.0}])
    send(broker, topic, [{"id": 3, "price": YEAR_262143}])
    folder.once()
    for name in ("named", "chosen", "whole"):
        assert folder.rows(f"staging.{name}", "id") == [1, 3]
        assert folder.rows(f"quarantine.staging__{name}", "payload") == [b"not json"]
    for name in ("daily", "keyed"):
        assert folder.rows(f"staging.{name}", "id") == [1]
        refused = folder.rows(f"quarantine.staging__{name}", "rule", "row")
        assert [rule for rule, _ in refused] == ["partition", "unreadable"]
        assert json.loads(refused[0][1]) == {"id": 3, "day": "+262143-01-01"}


FRESH = """
CREATE STREAMING TABLE trusted.warned (CONSTRAINT fresh EXPECT FRESH at WITHIN 1 HOURS)
AS SELECT id, timestamp_millis(at) AS at FROM STREAM(sources.events);
CREATE STREAMING TABLE trusted.failing (CONSTRAINT fresh EXPECT FRESH at WITHIN 1 HOURS
  ON VIOLATION FAIL UPDATE) AS SELECT id, timestamp_millis(at) AS at FROM STREAM(sources.events);
"""
HOUR_NS = 3_600 * 1_000_000_000


def test_tables_without_new_rows_become_stale(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("fresh", topic, "id LONG, at LONG"), tables_sql=FRESH
    )
    clock = JumpingClock()
    monkeypatch.setattr(time, "time_ns", clock)
    send(broker, topic, [{"id": 1, "at": clock() // 1_000_000}])
    folder.once()
    assert status_of(folder).stale == ()
    clock.ahead_ns += 3 * HOUR_NS // 2
    with pytest.raises(FlowsFailed, match=r"trusted.failing breaks .*newest at is \d+ s old"):
        folder.once()
    assert [text.partition(" ")[0] for text in status_of(folder).stale] == [
        "trusted.warned",
        "trusted.failing",
    ]
    pages: list[str] = []
    with Continuously([folder], MetricsPort("127.0.0.1", 0, pages.append)):
        eventually(
            lambda: states(folder) == ["running", "running"], "the table has its full hour again"
        )
        clock.ahead_ns += 2 * HOUR_NS
        eventually(lambda: states(folder) == ["running", "failed"], "the table is stale")
        eventually(lambda: "lag_records" in metrics_at(pages[0]), "Spark has reported a batch")
        shown = metrics_at(pages[0])
    assert len(status_of(folder).stale) == 2
    assert shown["rows_in_total"] == {"trusted.warned": 1, "trusted.failing": 1}
    assert shown["lag_records"] == {"trusted.warned": 0}, (
        "a failed flow has no query that reports its lag"
    )
    assert shown["failed"] == {"trusted.warned": 0, "trusted.failing": 1}
    assert shown["stale"] == {"trusted.warned": 1, "trusted.failing": 1}


def status_of(folder: Folder) -> PipelineStatus:
    (found,) = status([folder.path], folder.overrides)
    return found


def states(folder: Folder) -> list[str]:
    return [flow.state for flow in status_of(folder).flows]


def metrics_at(address: str) -> dict[str, dict[str, float]]:
    """Return the metrics of each flow by target, under names without their common prefix."""
    with urlopen(address, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            name = one.name.removeprefix("headrace_pipelines_")
            found.setdefault(name, {})[one.labels.get("target", "")] = one.value
    return found
