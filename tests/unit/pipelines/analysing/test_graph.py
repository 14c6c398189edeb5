"""Inputs of datasets: order, circles, unknown names, impossible ways of reading."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.graph import circles, describe, graph_of, problems
from headrace.pipelines.analysing.reads import Read
from tests.builders.declared_pipelines import SETTINGS, load_folder

CHAIN = """
CREATE MATERIALIZED VIEW refined.n AS SELECT count(*) AS n FROM trusted.orders;
CREATE STREAMING TABLE trusted.orders AS SELECT * FROM STREAM(staging.orders);
CREATE STREAMING TABLE staging.orders AS SELECT * FROM STREAM(recent);
CREATE TEMPORARY VIEW recent AS SELECT * FROM STREAM(sources.orders);
CREATE SINK alerts TOPIC 'alerts';
CREATE FLOW big AS INSERT INTO alerts BY NAME SELECT * FROM STREAM(staging.orders);
"""


def complaints(place: Path, sql: str) -> list[str]:
    return [str(one) for one in problems(graph_of(load_folder(place, {"a.sql": sql})))]


def test_inputs_come_before_their_readers(tmp_path: Path) -> None:
    graph = graph_of(load_folder(tmp_path, {"a.sql": CHAIN}))
    order = graph.order()
    assert all(order.index(edge.source) < order.index(edge.target) for edge in graph.edges)
    assert sorted(order) == sorted(graph.names)
    assert problems(graph) == []


def test_a_chain_of_tables_longer_than_pythons_stack_is_sorted(tmp_path: Path) -> None:
    sql = "CREATE STREAMING TABLE raw.t0 AS SELECT * FROM STREAM(sources.orders);\n"
    for number in range(1, 1200):
        sql = (
            f"CREATE STREAMING TABLE raw.t{number} AS SELECT * FROM STREAM(raw.t{number - 1});\n"
            + sql
        )
    graph = graph_of(load_folder(tmp_path, {"a.sql": sql}))
    assert graph.order() == ["sources.orders", *(f"raw.t{number}" for number in range(1200))]
    assert circles(graph) == []


def test_a_cycle_is_reported_once_with_its_path(tmp_path: Path) -> None:
    sql = """
    CREATE STREAMING TABLE raw.a AS SELECT * FROM STREAM(raw.c);
    CREATE STREAMING TABLE raw.b AS SELECT * FROM STREAM(raw.a) JOIN raw.a;
    CREATE STREAMING TABLE raw.c AS SELECT * FROM STREAM(raw.b);
    CREATE STREAMING TABLE raw.d AS SELECT * FROM STREAM(raw.d);
    """
    assert complaints(tmp_path, sql) == [
        "a.sql:2: the datasets read each other in a circle: raw.a -> raw.b -> raw.c -> raw.a",
        "a.sql:5: the datasets read each other in a circle: raw.d -> raw.d",
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT * FROM STREAM(raw.oders)",
            "there is no raw.oders to read; did you mean raw.orders",
        ),
        ("SELECT * FROM STREAM(sources.x)", "declare [sources.x] in pipeline.toml"),
        (
            "SELECT * FROM STREAM(sources.oders)",
            "there is no sources.oders to read; did you mean sources.orders?",
        ),
        ("SELECT * FROM STREAM(zzz)", "declare it, or read one of: sources.orders, staging.x"),
        (
            "SELECT * FROM STREAM(refined.view)",
            "refined.view is a materialized view, which is recom",
        ),
        ("SELECT * FROM STREAM(refined.merged)", "refined.merged is a merged view"),
        ("SELECT * FROM STREAM(trusted.keyed)", "trusted.keyed keeps one row per id"),
        ("SELECT * FROM STREAM(trusted.changed)", "trusted.changed is kept by a flow of changes"),
        ("SELECT * FROM STREAM(alerts)", "alerts is a sink, which is only written to"),
        ("SELECT * FROM sources.orders", "a flow reads as a stream: STREAM(sources.orders)"),
    ],
)
def test_invalid_reads_are_reported(tmp_path: Path, query: str, message: str) -> None:
    sql = f"""CREATE STREAMING TABLE staging.x AS {query};
    CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
    CREATE MATERIALIZED VIEW refined.view AS SELECT * FROM sources.orders;
    CREATE MERGED VIEW refined.merged MERGE (n SUM) AS SELECT 1 AS n FROM STREAM(raw.orders);
    CREATE STREAMING TABLE trusted.keyed KEYS (id) AS SELECT * FROM STREAM(raw.orders);
    CREATE STREAMING TABLE trusted.changed;
    CREATE FLOW c AS AUTO CDC INTO trusted.changed FROM STREAM(raw.orders) KEYS (id) SEQUENCE BY ts;
    CREATE SINK alerts TOPIC 'a';
    CREATE FLOW big AS INSERT INTO alerts BY NAME SELECT * FROM STREAM(raw.orders);
    """
    (found,) = complaints(tmp_path, sql)
    assert found.startswith("a.sql:1: ")
    assert message in found


def test_quarantine_may_be_read(tmp_path: Path) -> None:
    sql = """
    CREATE MATERIALIZED VIEW refined.bad AS SELECT * FROM quarantine.raw__orders;
    CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
    """
    graph = graph_of(load_folder(tmp_path, {"a.sql": sql}))
    assert problems(graph) == []
    assert graph.kind("quarantine.raw__orders") == "quarantine"
    order = graph.order()
    assert order.index("raw.orders") < order.index("quarantine.raw__orders")


def test_reads_found_by_spark_override_the_text(tmp_path: Path) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": CHAIN})
    graph = graph_of(pipeline, {"big": [Read("trusted.orders", is_stream=False)]})
    assert [(edge.source, edge.is_stream) for edge in graph.inputs("alerts")] == [
        ("trusted.orders", False)
    ]


def test_nodes_are_described_in_a_few_words(tmp_path: Path) -> None:
    sql = """
    CREATE STREAMING TABLE raw.a KEYS (id) AS SELECT * FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.b (CONSTRAINT c EXPECT (id > 1)) AS SELECT * FROM STREAM(sources.p);
    CREATE MATERIALIZED VIEW refined.v REFRESH CRON '0 * * * *' AS SELECT 1 AS one;
    CREATE MERGED VIEW refined.m MERGE (n SUM) AS SELECT 1 AS n FROM STREAM(raw.b);
    CREATE TEMPORARY VIEW t AS SELECT 1 AS one;
    """
    settings = SETTINGS.replace('"shop"', '"shop"\narchitecture = "lambda"')
    graph = graph_of(
        load_folder(tmp_path, {"a.sql": sql}, settings + '\n[sources.p]\npattern = "p.*"')
    )
    assert {name: describe(graph, name) for name in graph.names} == {
        "sources.orders": "topic orders, json",
        "sources.p": "topics like p.*, bytes",
        "raw.a": "streaming table, by id",
        "raw.b": "streaming table, 1 expectation",
        "refined.v": "materialized view, by cron 0 * * * *",
        "refined.m": "merged view, batch layer every 1 minute",
        "t": "temporary view",
    }
