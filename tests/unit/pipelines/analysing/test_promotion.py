"""Rules of promotion: the zones that a zone reads, and the requirements of its tables."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.checking import check
from headrace.pipelines.analysing.graph import graph_of
from headrace.pipelines.analysing.promotion import problems, unpartitioned
from tests.builders.declared_pipelines import SETTINGS, load_folder

FORWARD = """
CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE staging.orders AS SELECT * FROM STREAM(raw.orders);
CREATE STREAMING TABLE trusted.orders AS SELECT * FROM STREAM(staging.orders);
CREATE MATERIALIZED VIEW refined.orders AS SELECT * FROM trusted.orders;
"""


def complaints(place: Path, sql: str, rules: str = "") -> list[str]:
    pipeline = load_folder(place, {"a.sql": sql}, f"{SETTINGS}\n{rules}")
    return [str(one) for one in problems(graph_of(pipeline))]


@pytest.mark.parametrize(
    "more",
    [
        "",
        "CREATE MATERIALIZED VIEW refined.more AS SELECT * FROM refined.orders",
        "CREATE STREAMING TABLE refined.soon AS SELECT * FROM STREAM(raw.orders)",
        "CREATE MATERIALIZED VIEW sandbox.all AS SELECT * FROM refined.orders",
        "CREATE MATERIALIZED VIEW staging.bad AS SELECT * FROM quarantine.trusted__orders",
        "CREATE SINK s TOPIC 't'; CREATE FLOW f AS INSERT INTO s BY NAME"
        " SELECT * FROM STREAM(trusted.orders)",
    ],
)
def test_zones_may_read_earlier_zones_by_default(tmp_path: Path, more: str) -> None:
    """ARC-4: without rules a zone reads itself and what comes before it."""
    assert complaints(tmp_path, FORWARD + more, '[zones]\nsandbox = ""') == []


def test_a_read_from_a_later_zone_is_reported_with_its_line(tmp_path: Path) -> None:
    """ARC-4."""
    more = "CREATE MATERIALIZED VIEW staging.back AS SELECT * FROM refined.orders;"
    assert complaints(tmp_path, FORWARD + more) == [
        "a.sql:6: staging.back reads refined.orders, and tables of staging may read sources, raw,"
        " staging, quarantine; read one of these, or change reads in [zones.staging] of"
        " pipeline.toml"
    ]


def test_a_way_back_is_allowed_where_it_is_declared(tmp_path: Path) -> None:
    more = "CREATE MATERIALIZED VIEW staging.back AS SELECT * FROM refined.orders;"
    rules = '[zones.staging]\nreads = ["raw", "refined"]'
    assert complaints(tmp_path, FORWARD + more, rules) == []


def test_no_zone_is_skipped_where_that_is_declared(tmp_path: Path) -> None:
    """ARC-4: refined reads trusted and refined only."""
    more = "CREATE MATERIALIZED VIEW refined.early AS SELECT * FROM staging.orders;"
    rules = '[zones.refined]\nreads = ["trusted", "refined"]'
    (found,) = complaints(tmp_path, FORWARD + more, rules)
    assert found.startswith("a.sql:6: refined.early reads staging.orders, and tables of refined")


def test_a_temporary_view_hides_nothing(tmp_path: Path) -> None:
    more = """CREATE TEMPORARY VIEW one AS SELECT * FROM refined.orders;
CREATE TEMPORARY VIEW two AS SELECT * FROM one;
CREATE MATERIALIZED VIEW staging.back AS SELECT * FROM two;"""
    (found,) = complaints(tmp_path, FORWARD + more)
    assert "staging.back reads refined.orders" in found


EDITED = """
CREATE STREAMING TABLE raw.keyed KEYS (id) AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE raw.changed;
CREATE FLOW c AS AUTO CDC INTO raw.changed FROM STREAM(sources.orders) KEYS (id) SEQUENCE BY ts;
CREATE MATERIALIZED VIEW raw.whole AS SELECT * FROM raw.fine;
CREATE STREAMING TABLE raw.loose TBLPROPERTIES ('delta.appendOnly' = 'false')
AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.keyed TBLPROPERTIES ('delta.appendOnly' = 'true') KEYS (id)
AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE raw.fine PARTITIONED BY (topic, day)
AS SELECT *, date(timestamp) AS day FROM STREAM(sources.orders);
"""


def test_tables_of_raw_only_grow(tmp_path: Path) -> None:
    """ARC-4: stored rows are never edited, also in tables that a property makes append-only."""
    found = complaints(tmp_path, EDITED)
    assert [line.split()[:2] for line in found] == [
        ["a.sql:2:", "raw.keyed"],
        ["a.sql:3:", "raw.changed"],
        ["a.sql:5:", "raw.whole"],
        ["a.sql:6:", "raw.loose"],
        ["a.sql:8:", "trusted.keyed"],
    ]
    assert "keeps one row per id, so its rows change, and tables of raw only grow" in found[0]


PARTED = """
CREATE STREAMING TABLE raw.daily PARTITIONED BY (day) AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE raw.hourly PARTITIONED BY (topic, h) AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE raw.whole PARTITIONED BY () AS SELECT * FROM STREAM(sources.orders);
"""


def test_the_dry_run_notes_unpartitioned_raw_tables(tmp_path: Path) -> None:
    """ARC-4: except tables with default partitions, or declared without partitions."""
    pipeline = load_folder(tmp_path, {"a.sql": FORWARD + PARTED})
    notes = [note for note in check(pipeline).notes if "is not partitioned by topic" in note]
    assert [note.split()[1] for note in notes] == ["raw.daily"]
    assert "it is declared by day; remove PARTITIONED BY" in notes[0]
    (left_out, _) = unpartitioned(pipeline, {"raw.orders": "it brings no topic"})
    assert left_out.startswith("a.sql:2: raw.orders is not partitioned by topic and day")
    assert left_out.endswith("reads all of it: it brings no topic")


CHECKED = """
CREATE STREAMING TABLE trusted.expected (CONSTRAINT c EXPECT (id > 1))
AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.unique (CONSTRAINT c EXPECT UNIQUE (id) ON VIOLATION DROP ROW)
AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.keyed KEYS (id) AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.changed;
CREATE FLOW c AS AUTO CDC INTO trusted.changed FROM STREAM(sources.orders) KEYS (id) SEQUENCE BY ts;
CREATE MERGED VIEW trusted.merged MERGE (n SUM)
AS SELECT id, count(*) AS n FROM STREAM(trusted.unique) GROUP BY id;
CREATE STREAMING TABLE trusted.plain COMMENT 'p' AS SELECT * FROM STREAM(sources.orders);
"""


@pytest.mark.parametrize(
    ("requirement", "lacking"),
    [
        ("checks", ["plain"]),
        ("key", ["expected", "plain"]),
        ("expectations", ["keyed", "changed", "merged", "plain"]),
        ("comment", ["expected", "unique", "keyed", "changed", "merged"]),
    ],
)
def test_tables_that_break_requirements_of_their_zone_are_found(
    tmp_path: Path, requirement: str, lacking: list[str]
) -> None:
    """ARC-4."""
    found = complaints(tmp_path, CHECKED, f'[zones.trusted]\nrequires = ["{requirement}"]')
    assert [line.split()[1] for line in found] == [f"trusted.{name}" for name in lacking]


def test_a_missing_requirement_is_reported_with_its_line(tmp_path: Path) -> None:
    found = complaints(tmp_path, CHECKED, '[zones.trusted]\nrequires = ["checks"]')
    assert found == [
        "a.sql:11: trusted.plain lacks what [zones.trusted] of pipeline.toml requires of each table"
        " (checks); declare an expectation, or keys, or move it to another zone"
    ]


def test_the_dry_run_reports_broken_rules(tmp_path: Path) -> None:
    """ARC-4."""
    sql = "CREATE STREAMING TABLE trusted.plain AS SELECT * FROM STREAM(sources.orders);"
    settings = f'{SETTINGS}\n[zones.trusted]\nreads = ["staging"]\nrequires = ["checks"]'
    report = check(load_folder(tmp_path, {"a.sql": sql}, settings))
    assert len(report.problems) == 2
