"""The dry run without Spark: names, circles and topics."""

from pathlib import Path

from headrace.pipelines.analysing.checking import check
from headrace.pipelines.analysing.topic_checks import TopicReport
from headrace.pipelines.problems import Problem
from tests.builders.declared_pipelines import load_folder

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);\n"


def test_a_note_reports_that_columns_are_not_checked_without_spark(tmp_path: Path) -> None:
    report = check(load_folder(tmp_path, {"a.sql": TABLE.replace("*", "no_such_column")}))
    assert report.problems == ()
    assert "columns were not checked" in report.notes[0]


def test_the_graph_is_checked_without_spark(tmp_path: Path) -> None:
    report = check(load_folder(tmp_path, {"a.sql": TABLE.replace("orders", "odrers")}))
    assert "there is no sources.odrers" in str(report.problems[0])


def test_problems_of_topics_join_the_others_in_order(tmp_path: Path) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": TABLE.replace("orders", "odrers")})
    place = pipeline.sources["orders"].location
    report = check(
        pipeline, topics=lambda _: TopicReport((Problem("no topic", place),), ("a note",))
    )
    assert [str(one.location) for one in report.problems] == ["a.sql:1", "pipeline.toml:5"]
    assert report.notes[-1] == "a note"


WRONG_SOURCES = """
[pipeline]
name = "shop"
[sources.a]
format = "json"
schema = "id BIGNT"
[sources.b.options]
maxOffsetsPerTrigger = 0
[sources.c]
format = "avro"
[sources.c.options]
schema.registry.url = "http://nowhere.invalid"
"""


def test_invalid_sources_and_zones_are_reported_without_spark(tmp_path: Path) -> None:
    """All problems at once, each with its line; schemas of a registry are left to Spark."""
    sql = (
        "CREATE STREAMING TABLE raw.x KEYS (id) AS SELECT * FROM STREAM(sources.a);\n"
        "CREATE MATERIALIZED VIEW staging.y AS SELECT * FROM refined.z;\n"
        "CREATE MATERIALIZED VIEW refined.z AS SELECT * FROM staging.y;\n"
    )
    found = [
        str(one) for one in check(load_folder(tmp_path, {"a.sql": sql}, WRONG_SOURCES)).problems
    ]
    wanted = [
        ("a.sql:1: ", "raw.x keeps one row per id"),
        ("a.sql:2: ", "staging.y -> refined.z -> staging.y"),
        ("a.sql:2: ", "staging.y reads refined.z"),
        ("pipeline.toml:4: ", "sources.a: "),
        ("pipeline.toml:7: ", "sources.b: maxOffsetsPerTrigger is '0'"),
    ]
    assert [line.startswith(place) for line, (place, _) in zip(found, wanted, strict=True)] == [
        True
    ] * len(wanted), "\n".join(found)
    assert [text in line for line, (_, text) in zip(found, wanted, strict=True)] == [True] * 5
