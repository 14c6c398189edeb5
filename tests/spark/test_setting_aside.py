"""Unreadable records go to quarantine, independent of the query's use of their columns."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.errors import HeadraceError
from headrace.pipelines.running.flows.targets import AppendTarget, TopicTarget
from headrace.pipelines.testing import PipelineTest
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send, toml

SCHEMA = "id LONG, tags ARRAY<STRING>"
AGAIN = """
[sources.events.options]
maxOffsetsPerTrigger = 3
startingTimestamp = 1
startingOffsetsByTimestampStrategy = "latest"
[sources.again]
topic = "{topic}"
format = "json"
schema = "{schema}"
where = "id = 2"
"""
TABLES = """
CREATE STREAMING TABLE staging.exploded DEAD LETTER TOPIC '{letters}'
  AS SELECT id, explode(tags) AS tag FROM STREAM(sources.events);
CREATE STREAMING TABLE staging.joined
  AS SELECT a.id FROM STREAM(sources.events) a JOIN staging.never b ON a.id = b.id;
CREATE STREAMING TABLE staging.grouped KEYS (one)
  AS SELECT 1 AS one, count(*) AS n FROM STREAM(sources.events) GROUP BY 1;
CREATE STREAMING TABLE staging.never AS SELECT id FROM STREAM(sources.events) WHERE false;
CREATE STREAMING TABLE staging.twice
  AS SELECT id FROM STREAM(sources.events) UNION ALL SELECT id FROM STREAM(sources.again);
CREATE STREAMING TABLE staging.own
  AS SELECT id, _error IS NOT NULL AS is_bad FROM STREAM(sources.events);
CREATE SINK sent TOPIC '{sent}' FORMAT json;
CREATE FLOW sending AS INSERT INTO sent BY NAME SELECT id FROM STREAM(sources.events);
"""
FUNCTION = """
from headrace import pipelines as dp


@dp.table(name="staging.filtered")
def filtered():
    return dp.read_stream("sources.events").where("id > 1").select("id")


@dp.materialized_view(name="refined.counted")
def counted():
    return dp.read("sources.events").groupBy().count()
"""
BAD = b"{torn"
QUARANTINES = (
    *("staging__exploded", "staging__joined", "staging__grouped", "staging__never"),
    *("staging__filtered", "staging__twice", "sent", "refined__counted"),
)


def cut_off_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fail a table once behind the commit of its quarantine, a sink before it; return both."""
    failed: list[str] = []
    commit, put_away = AppendTarget._commit, TopicTarget._quarantine_unreadable

    def fail(name: str) -> None:
        if name not in failed:
            failed.append(name)
            raise HeadraceError("the power is gone")

    def cut_commit(self: AppendTarget, *of_it: Any) -> int:
        if self.intake.place.name == "staging.exploded":
            fail("table")
        return commit(self, *of_it)

    def cut_put_away(self: TopicTarget, *of_it: Any) -> int:
        fail("sink")
        return put_away(self, *of_it)

    monkeypatch.setattr(AppendTarget, "_commit", cut_commit)
    monkeypatch.setattr(TopicTarget, "_quarantine_unreadable", cut_put_away)
    return failed


def test_no_query_loses_unreadable_records_or_turns_them_into_nulls(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ARC-4: each unreadable record is in quarantine once, with reason, place and bytes.

    This includes payloads that the query does not use, payloads that two readers read in different
    batches, and payloads that are read again after a crash.
    """
    topic, letters, sent = make_topic(partitions=2), make_topic(), make_topic()
    settings = toml("aside", topic, SCHEMA) + AGAIN.format(topic=topic, schema=SCHEMA)
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=settings,
        tables_sql=TABLES.format(letters=letters, sent=sent),
        functions_py=FUNCTION,
    )
    failed = cut_off_once(monkeypatch)
    good = [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}]
    send(broker, topic, [*good, BAD, *good, BAD])
    folder.once()
    assert sorted(failed) == ["sink", "table"]
    for name in QUARANTINES:
        found = folder.rows(f"quarantine.{name}", "rule", "payload", "topic")
        assert found == [("unreadable", BAD, topic)] * 2, name
    assert len({*folder.rows("quarantine.staging__never", "partition", "offset")}) == 2
    assert folder.rows("staging.exploded", "tag") == ["a", "a", "b", "b"]
    assert folder.rows("staging.filtered", "id") == [2, 2]
    assert folder.rows("staging.joined", "id") == folder.rows("staging.never", "id") == []
    assert folder.rows("staging.twice", "id") == [1, 1, 2, 2, 2, 2]
    assert folder.rows("staging.grouped", "n") == folder.rows("refined.counted", "count") == [4]
    assert folder.rows("staging.own", "is_bad") == [False] * 4 + [True] * 2
    assert folder.read_topic(letters) == [BAD] * 2
    assert sorted(folder.read_topic(sent)) == [b'{"id":1}'] * 2 + [b'{"id":2}'] * 2


def test_a_users_test_sees_the_same(tmp_path: Path, spark: SparkSession) -> None:
    """Without a cluster no dead letters are sent; quarantine has their content."""
    folder = tmp_path / "pipeline"
    folder.mkdir()
    nowhere = toml("aside", "events", SCHEMA, bootstrap="127.0.0.1:1")
    settings = nowhere + AGAIN.format(topic="events", schema=SCHEMA)
    (folder / "pipeline.toml").write_text(settings)
    (folder / "tables.sql").write_text(TABLES.format(letters="l", sent="s"))
    tested = PipelineTest(folder, spark, tmp_path / "place")
    tested.given("sources.events", [b'{"id": 1, "tags": ["a"]}', BAD])
    tested.run("staging.exploded")
    assert [row["tag"] for row in tested.rows("staging.exploded")] == ["a"]
    assert [row["payload"] for row in tested.quarantined("staging.exploded")] == [BAD]
