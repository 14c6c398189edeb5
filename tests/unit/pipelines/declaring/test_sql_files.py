"""Pipelines in SQL: what each statement declares, and where a wrong one is wrong."""

from pathlib import Path

import pytest

from headrace.lake.quarantine import PARTITION, UNREADABLE
from headrace.pipelines.declaring.registry import OWN_RULES, Registry
from headrace.pipelines.declaring.sql_files import declare_file
from headrace.pipelines.model import (
    Changes,
    Expectation,
    Flow,
    Freshness,
    Location,
    MaterializedView,
    MergedView,
    RowCount,
    RowRule,
    Sink,
    StreamingTable,
    TableRule,
    TemporaryView,
    UniqueKey,
    Violation,
)
from headrace.pipelines.problems import PipelineError
from tests.builders.declared_pipelines import load_folder


def declared(sql: str) -> Registry:
    registry = Registry(Path("/folder"))
    declare_file(sql, "a.sql", registry)
    return registry


def only(sql: str) -> object:
    registry = declared(sql)
    assert registry.problems == []
    ((dataset),) = [one.dataset for one in registry.datasets]
    return dataset


def complaints(sql: str) -> list[str]:
    return [str(problem) for problem in declared(sql).problems]


def test_a_streaming_table_has_columns_rules_and_a_query() -> None:
    """ARC-4: tables of zones, with the checks of their rows."""
    sql = """
    CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS Staging.Orders (
      id BIGINT NOT NULL, tags MAP<STRING, ARRAY<INT>>, price DECIMAL(10, 2),
      CONSTRAINT cheap EXPECT (price < 100 AND id IN (1, 2)) ON VIOLATION DROP ROW,
      CONSTRAINT `has day` EXPECT (day IS NOT NULL)
    )
    PARTITIONED BY (day, `the hour`) KEYS (id) SEQUENCE BY `the hour` COMMENT 'all; it''s "them"'
    TBLPROPERTIES ('a.b' = 'c', d.e = 3) TRIGGER EVERY 10 SECONDS
    DEAD LETTER TOPIC 'letters'
    AS SELECT * FROM STREAM(raw.orders);
    """
    registry = declared(sql)
    assert registry.problems == []
    (table,) = [one.dataset for one in registry.datasets]
    assert table == StreamingTable(
        name="staging.orders",
        location=Location("a.sql", 2),
        comment='all; it\'s "them"',
        schema="id BIGINT NOT NULL, tags MAP<STRING, ARRAY<INT>>, price DECIMAL(10, 2)",
        partition_by=("day", "the hour"),
        keys=("id",),
        sequence_by="the hour",
        expectations=(
            Expectation("cheap", RowRule("price < 100 AND id IN (1, 2)"), Violation.DROP),
            Expectation("has day", RowRule("day IS NOT NULL"), Violation.WARN),
        ),
        dead_letter_topic="letters",
        properties={"a.b": "c", "d.e": "3"},
    )
    (flow,) = registry.flows
    assert (flow.name, flow.target, flow.trigger) == (
        "staging.orders",
        "staging.orders",
        "10 seconds",
    )


@pytest.mark.parametrize(
    ("clause", "partitions"),
    [("", None), ("PARTITIONED BY ()", ()), ("PARTITIONED BY (a)", ("a",))],
)
def test_empty_partitioning_differs_from_none_declared(
    clause: str, partitions: tuple[str, ...] | None
) -> None:
    table = only(f"CREATE STREAMING TABLE raw.x {clause} AS SELECT * FROM STREAM(sources.x)")
    assert isinstance(table, StreamingTable)
    assert table.partition_by == partitions
    view = only(f"CREATE MATERIALIZED VIEW refined.x {clause} AS SELECT * FROM raw.x")
    assert isinstance(view, MaterializedView)
    assert view.partition_by == (partitions or ())


def test_a_query_stays_on_its_line_so_that_spark_names_it() -> None:
    registry = declared("\n\nCREATE STREAMING TABLE raw.x AS\nSELECT *\nFROM STREAM(sources.x);")
    assert registry.flows[0].query == "\n\n\nSELECT *\nFROM STREAM(sources.x)"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("UNIQUE (a, b)", UniqueKey(("a", "b"))),
        ("FRESH ts WITHIN 5 MINUTES", Freshness("ts", 300.0)),
        ("ROWS AT LEAST 1 AT MOST 9", RowCount(1, 9)),
        ("ROWS AT MOST 9", RowCount(0, 9)),
        ("BATCH (avg(price) < 9)", TableRule("avg(price) < 9")),
    ],
)
def test_rules_that_are_not_about_single_rows(rule: str, expected: object) -> None:
    table = only(f"CREATE STREAMING TABLE raw.x (CONSTRAINT c EXPECT {rule} ON VIOLATION WARN)")
    assert isinstance(table, StreamingTable)
    assert table.expectations == (Expectation("c", expected, Violation.WARN),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "violation"),
    [("DROP ROW", "drop"), ("FAIL UPDATE", "fail"), ("QUARANTINE ROW", "quarantine")],
)
def test_the_action_on_rows_that_break_a_rule_is_parsed(words: str, violation: str) -> None:
    view = only(
        f"CREATE MATERIALIZED VIEW raw.x (CONSTRAINT c EXPECT (a > 1) ON VIOLATION {words})"
        " AS SELECT 1 AS a"
    )
    assert isinstance(view, MaterializedView)
    assert view.expectations[0].on_violation is Violation(violation)


def test_views_of_all_kinds() -> None:
    assert only("CREATE MATERIALIZED VIEW refined.n REFRESH EVERY 5 MINUTES AS SELECT 1") == (
        MaterializedView("refined.n", "SELECT 1", Location("a.sql", 1), refresh="5 minutes")
    )
    assert only("CREATE TEMPORARY VIEW recent AS SELECT 1") == (
        TemporaryView("recent", "SELECT 1", Location("a.sql", 1))
    )
    assert only(
        "CREATE MERGED VIEW refined.m MERGE (hits SUM, last MAX) DEDUPLICATE BY (id)"
        " REFRESH CRON '0 * * * *' AS SELECT 1"
    ) == MergedView(
        "refined.m",
        "SELECT 1",
        Location("a.sql", 1),
        merge={"hits": "sum", "last": "max"},
        deduplicate_by=("id",),
        refresh="0 * * * *",
    )


def test_a_sink_and_flows_into_it() -> None:
    registry = declared(
        "CREATE SINK alerts TOPIC 'big-orders' FORMAT json GUARANTEE 'idempotent';\n"
        "CREATE FLOW big AS INSERT INTO alerts BY NAME SELECT * FROM STREAM(raw.x);\n"
        "CREATE FLOW old TRIGGER EVERY '1 hour' AS INSERT INTO ONCE alerts BY NAME SELECT 1"
    )
    assert registry.problems == []
    assert registry.datasets[0].dataset == Sink(
        "alerts", Location("a.sql", 1), "big-orders", "json", "idempotent"
    )
    big, old = registry.flows
    assert big == Flow("big", "alerts", "\nSELECT * FROM STREAM(raw.x)", Location("a.sql", 2))
    assert (old.is_once, old.trigger) == (True, "1 hour")


@pytest.mark.parametrize(
    "clauses",
    [
        "KEYS (id) APPLY AS DELETE WHEN op IN ('D', 'T') SEQUENCE BY ts"
        " COLUMNS * EXCEPT (op) STORED AS SCD TYPE 2",
        "KEYS (id) SEQUENCE BY ts STORED AS SCD TYPE 2 COLUMNS * EXCEPT (op)"
        " APPLY AS DELETE WHEN op IN ('D', 'T')",
    ],
)
def test_changes_are_applied_by_clauses_in_any_order(clauses: str) -> None:
    registry = declared(f"CREATE FLOW f AS AUTO CDC INTO raw.x FROM STREAM(raw.changes) {clauses}")
    assert registry.problems == []
    (flow,) = registry.flows
    assert flow.query == "SELECT * FROM STREAM(raw.changes)"
    assert flow.changes == Changes(("id",), "ts", "op IN ('D', 'T')", 2, ("op",))


def test_changes_may_be_put_in_order_by_an_expression() -> None:
    registry = declared(
        "CREATE FLOW f AS AUTO CDC INTO raw.x FROM STREAM(raw.changes) KEYS (id)"
        " SEQUENCE BY struct(date(ts), coalesce(number, 0)) STORED AS SCD TYPE 1"
    )
    (flow,) = registry.flows
    assert flow.changes == Changes(("id",), "struct(date(ts), coalesce(number, 0))")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1", "a.sql:1: SELECT does not fit here; a statement begins with one of CREATE"),
        ("CREATE TABLE raw.x AS SELECT 1", "a.sql:1: TABLE does not fit here"),
        ("CREAT SINK s TOPIC 't'", "did you mean CREATE?"),
        ("CREATE STREMING TABLE raw.x AS SELECT 1", "did you mean STREAMING?"),
        ("CREATE SINK s TOPIC 't';\nCREATE FLOW f TRIGER EVERY 1 DAY", "did you mean TRIGGER?"),
        ("\nCREATE STREAMING TABLE raw.x\nPARTITION (a)", "a.sql:3: PARTITION does not fit here"),
        ("CREATE STREAMING TABLE raw.x (id BIGINT", "a.sql:1: ( does not fit here; this paren"),
        (
            "CREATE STREAMING TABLE raw.x AS",
            "the statement ends too early; a query must come here",
        ),
        ("CREATE STREAMING TABLE 'x'", "'x' does not fit here; a name must come here"),
        ("CREATE STREAMING TABLE raw.x KEYS (a, )", "empty place"),
        ("CREATE STREAMING TABLE raw.x TRIGGER EVERY 3 BEERS AS SELECT 1", "not an interval"),
        ("CREATE STREAMING TABLE raw.x (CONSTRAINT c EXPECT a > 1)", "condition in parentheses"),
        ("CREATE STREAMING TABLE raw.x (CONSTRAINT c EXPECT (a) ON VIOLATION CRY)", "DROP ROW"),
        ("CREATE STREAMING TABLE raw.x (CONSTRAINT c CHECK (a))", "continues with EXPECT"),
        (
            "CREATE STREAMING TABLE raw.x"
            " (CONSTRAINT c EXPECT ROWS AT LEAST 1 ON VIOLATION DROP ROW)",
            "a.sql:1: the expectation 'c' is about whole batches",
        ),
        ("CREATE MATERIALIZED VIEW raw.x (id INT) AS SELECT 1", "those of its query"),
        ("CREATE MATERIALIZED VIEW raw.x", "needs a query"),
        ("CREATE MERGED VIEW raw.x AS SELECT 1", "a.sql:1: raw.x merges nothing"),
        ("CREATE FLOW f AS SELECT 1", "AS INSERT INTO or AS AUTO CDC INTO"),
        ("CREATE FLOW f AS INSERT INTO raw.x SELECT 1", "write BY NAME before the query"),
        (
            "CREATE FLOW f AS AUTO CDC INTO raw.x FROM STREAM(a) KEYS (id)",
            "SEQUENCE BY a column, or",
        ),
        ("CREATE SINK s FORMAT json", "a.sql:1: the sink s has no topic"),
        ("CREATE SINK s TOPIC 't' COLOUR red", "TOPIC, FORMAT, GUARANTEE, OPTIONS"),
        ("CREATE SINK s TOPIC 'no end", "a.sql:1: this ' has no end"),
    ],
)
def test_invalid_statements_are_reported_with_their_line(sql: str, message: str) -> None:
    assert any(message in line for line in complaints(sql)), complaints(sql)


def test_a_wrong_statement_does_not_hide_the_next() -> None:
    registry = declared("CREATE NONSENSE;\nCREATE TEMPORARY VIEW v AS SELECT 1;\nCREATE;\n")
    assert [problem.location for problem in registry.problems] == [
        Location("a.sql", 1),
        Location("a.sql", 3),
    ]
    assert [one.dataset.name for one in registry.datasets] == ["v"]


def test_all_mistyped_queries_are_reported_without_subsequent_errors() -> None:
    """A mistyped word is reported with its line, and does not hide its declaration."""
    assert complaints(
        """CREATE STREAMING TABLE raw.x AS SELCT * FROM STREAM(sources.orders);
        CREATE MATERIALIZED VIEW refined.n AS
        SELECT count(*) AS n FORM raw.x;
        CREATE TEMPORARY VIEW v AS SELECT (1;"""
    ) == [
        "a.sql:1: SELCT does not fit here; a query begins with SELECT, WITH, FROM, VALUES or TABLE;"
        " did you mean SELECT?",
        "a.sql:3: FORM does not fit here; did you mean FROM?",
        "a.sql:4: this ( is not closed",
    ]


def test_the_reserved_rules_are_those_of_quarantine() -> None:
    assert {PARTITION, UNREADABLE} == OWN_RULES


@pytest.mark.parametrize("name", sorted(OWN_RULES))
def test_an_expectation_cannot_have_the_name_of_a_reserved_rule(tmp_path: Path, name: str) -> None:
    """Its counts, and what becomes of its rows, would be the other's."""
    sql = f"CREATE STREAMING TABLE raw.o (CONSTRAINT {name} EXPECT (id > 0)) AS"
    with pytest.raises(PipelineError, match=f"{name}.*another name"):
        load_folder(tmp_path, {"a.sql": f"{sql} SELECT * FROM STREAM(sources.orders);"})
