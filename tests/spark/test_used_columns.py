"""The used columns of a topic: only these are built and sent, with the same rows."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.commands import load_all, prepared
from headrace.pipelines.running.flows.inputs import LiveReader
from headrace.pipelines.running.flows.used_columns import used_columns
from headrace.testing.process import BrokerProcess
from tests.builders.declared_pipelines import load_folder
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send, toml

SETTINGS = """
[pipeline]
name = "used"
[sources.o]
format = "json"
schema = "id BIGINT, price DOUBLE, name STRING, note STRING"
[sources.p]
format = "json"
schema = "id BIGINT, name STRING, weight DOUBLE"
[sources.entry]
format = "json"
schema = "id BIGINT, price DOUBLE, name STRING, note STRING"
where = "price > 0"
category = "upper(name)"
[sources.chosen]
format = "json"
schema = "id BIGINT, price DOUBLE"
[sources.chosen.options]
columns = "price,id"
"""
VIEW = "CREATE TEMPORARY VIEW v AS SELECT id, name AS n, price FROM STREAM(sources.o);\n"
PYTHON = """
from pyspark.sql.functions import udf
from headrace import pipelines as dp


@dp.table(name="raw.python")
def python():
    rows = dp.read_stream("sources.o")
    return rows.select("offset", udf(lambda n: n)("note").alias("n"))
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM STREAM(sources.o)", {"o": ("id",)}),
        ("SELECT id, _error, _payload FROM STREAM(sources.o)", {"o": ("id", "_error", "_payload")}),
        ("SELECT id FROM STREAM(sources.o) WHERE price > 1", {"o": ("id", "price")}),
        ("SELECT * FROM STREAM(sources.o)", {}),
        ("SELECT count(*) AS n FROM STREAM(sources.o)", {"o": ("offset",)}),
        (
            "SELECT name, sum(price) AS s FROM STREAM(sources.o) GROUP BY name",
            {"o": ("price", "name")},
        ),
        ("SELECT n FROM STREAM(v) WHERE price > 1", {"o": ("price", "name")}),
        (
            "SELECT a.id, b.weight FROM STREAM(sources.o) a JOIN STREAM(sources.p) b ON a.id = b.id"
            " AND a.note = b.name",
            {"o": ("id", "note"), "p": ("id", "name", "weight")},
        ),
        (
            "SELECT a.id FROM STREAM(sources.o) a JOIN STREAM(sources.o) b ON a.id = b.price",
            {"o": ("id", "price")},
        ),
        (
            "SELECT id FROM STREAM(sources.o) UNION ALL SELECT id FROM STREAM(sources.p)",
            {"o": ("id",), "p": ("id",)},
        ),
        (
            "SELECT _category AS c FROM STREAM(sources.entry)",
            {"entry": ("price", "name", "_error")},
        ),
        ("SELECT id FROM STREAM(sources.chosen)", {}),
        ("SELECT id FROM STREAM(sources.o) WHERE false", {}),
    ],
)
def test_the_columns_that_a_query_uses_are_found(
    query: str, expected: dict[str, Sequence[str]], tmp_path: Path, spark: SparkSession
) -> None:
    tables = f"{VIEW}CREATE STREAMING TABLE raw.t AS {query};"
    pipeline = load_folder(tmp_path, {"tables.sql": tables}, SETTINGS)
    analysis = Analysis(spark, pipeline)
    analysis.run()
    assert used_columns(analysis, pipeline.flows[0].query) == expected


def test_columns_that_a_python_function_uses_are_found(tmp_path: Path, spark: SparkSession) -> None:
    pipeline = load_folder(tmp_path, {"tables.py": PYTHON}, SETTINGS)
    analysis = Analysis(spark, pipeline)
    analysis.run()
    assert used_columns(analysis, pipeline.flows[0].query) == {"o": ("note", "offset")}


def test_the_runner_requests_only_used_columns_and_the_rows_are_the_same(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """A payload that is invalid in an unused column is rejected all the same.

    Views name columns that the query over them does not use.
    """
    topic = make_topic(partitions=2)
    schema = "id LONG, name STRING, amount DOUBLE"
    values = [{"id": n, "name": f"n{n}", "amount": n / 2} for n in range(50)]
    send(broker, topic, [*values, BAD, b"{torn"])
    found = []
    for name, options in (("pruned", ""), ("whole", ALL_COLUMNS)):
        folder = Folder(tmp_path / name, broker, spark).write(
            pipeline_toml=toml(name, topic, schema) + options,
            tables_sql="CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM(sources.events);\n"
            "CREATE TEMPORARY VIEW w AS SELECT id, name, amount, timestamp, partition, _error,"
            " _payload FROM STREAM(v);\n"
            "CREATE STREAMING TABLE raw.t AS SELECT id, length(name) AS l, _error, _payload"
            " FROM STREAM(w) WHERE partition >= 0;",
        )
        folder.once()
        found.append(folder.lake.table("raw.t").rows(order="id, l").to_pylist())
        (pipeline,) = load_all([folder.path], folder.overrides)
        run = prepared(spark, pipeline)
        (flow,) = run.flows()
        reader = LiveReader(run.reads(run.preparation.used_columns(flow)), run.folders.of(flow))
        rows = reader.read_stream("sources.events")
        assert (f"columns={','.join(PRUNED)}," in plan_of(rows)) == (name == "pruned")
        assert rows.columns == EVERY
        assert folder.rows("quarantine.raw__t", "payload") == [BAD, b"{torn"]
    assert found[0] == found[1]
    assert len(found[0]) == 50


def plan_of(rows: DataFrame) -> str:
    """With what a source is asked for."""
    return str(rows._jdf.queryExecution().analyzed().toString())


BAD = b'{"id": 50, "name": "x", "amount": "lots"}'
PRUNED = ["id", "name", "_error", "_payload", "partition"]


EVERY = [
    *("id", "name", "amount", "_error", "_payload"),
    *("topic", "partition", "offset", "timestamp"),
]
ALL_COLUMNS = f'[sources.events.options]\ncolumns = "{",".join(EVERY)}"\n'
