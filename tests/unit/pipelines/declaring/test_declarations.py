"""Pipelines in Python: what decorators and create functions note down, and their mistakes."""

from pathlib import Path

import pytest

from headrace import pipelines as dp
from headrace.pipelines.model import (
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
from tests.builders.declared_pipelines import load_folder, problems_of, told

HEAD = "from headrace import pipelines as dp\n"


def test_a_table_is_its_flow_too(tmp_path: Path) -> None:
    """ARC-4: tables are declared in zones."""
    pipeline = load_folder(
        tmp_path,
        {
            "a.py": HEAD
            + "\n@dp.table(name='staging.orders', comment='all', keys=['id'], sequence_by='at',\n"
            "    partition_cols=['day'], schema='id LONG', trigger='5 seconds',\n"
            "    dead_letter_topic='letters', table_properties={'a': 'b'})\n"
            "def orders():\n    return dp.read_stream('sources.orders')\n"
        },
    )
    table = pipeline.datasets["staging.orders"]
    assert table == StreamingTable(
        name="staging.orders",
        location=Location("a.py", 3),
        comment="all",
        schema="id LONG",
        partition_by=("day",),
        keys=("id",),
        sequence_by="at",
        dead_letter_topic="letters",
        properties={"a": "b"},
    )
    (flow,) = pipeline.flows
    assert (flow.name, flow.target, flow.trigger) == (
        "staging.orders",
        "staging.orders",
        "5 seconds",
    )
    assert callable(flow.query)


def test_empty_partitioning_differs_from_none_declared(tmp_path: Path) -> None:
    function = "def {}():\n    return dp.read_stream('sources.orders')\n"
    pipeline = load_folder(
        tmp_path,
        {
            "a.py": HEAD
            + "\n@dp.table(name='raw.a')\n"
            + function.format("a")
            + "\n@dp.table(name='raw.b', partition_cols=[])\n"
            + function.format("b")
            + "\ndp.create_streaming_table('raw.c', partition_cols=[])\n"
            "@dp.append_flow(target='raw.c')\n" + function.format("c")
        },
    )
    tables = [one for one in pipeline.datasets.values() if isinstance(one, StreamingTable)]
    assert [table.partition_by for table in tables] == [None, (), ()]


@pytest.mark.parametrize(
    "decorators",
    [
        "@dp.table(name='raw.x')\n@dp.expect('a', 'id > 1')\n@dp.expect_or_drop('b', 'id > 2')\n",
        "@dp.expect('a', 'id > 1')\n@dp.table(name='raw.x')\n@dp.expect_or_drop('b', 'id > 2')\n",
        "@dp.expect('a', 'id > 1')\n@dp.expect_or_drop('b', 'id > 2')\n@dp.table(name='raw.x')\n",
    ],
)
def test_the_order_of_decorators_does_not_matter(tmp_path: Path, decorators: str) -> None:
    pipeline = load_folder(
        tmp_path, {"a.py": HEAD + decorators + "def x(): return dp.read_stream('sources.orders')"}
    )
    table = pipeline.datasets["raw.x"]
    assert isinstance(table, StreamingTable)
    assert [(one.name, one.on_violation) for one in table.expectations] == [
        ("a", Violation.WARN),
        ("b", Violation.DROP),
    ]


def test_all_kinds_of_expectations_are_kept(tmp_path: Path) -> None:
    pipeline = load_folder(
        tmp_path,
        {
            "a.py": HEAD + "@dp.table(name='raw.x')\n"
            "@dp.expect_or_quarantine('set', dp.not_null('id'))\n"
            "@dp.expect_unique('id', 'ts')\n"
            "@dp.expect_fresh('ts', '5 minutes', on_violation='fail')\n"
            "@dp.expect_rows(1, 10)\n"
            "@dp.expect('mean', dp.of_batch('avg(price) < 9'))\n"
            "@dp.expect_all_or_fail({'p': 'price > 0', 'q': 'price < 9'})\n"
            "def x(): return dp.read_stream('sources.orders')"
        },
    )
    table = pipeline.datasets["raw.x"]
    assert isinstance(table, StreamingTable)
    assert [(one.rule, one.on_violation.value) for one in table.expectations] == [
        (RowRule("`id` IS NOT NULL"), "quarantine"),
        (UniqueKey(("id", "ts")), "drop"),
        (Freshness("ts", 300.0), "fail"),
        (RowCount(1, 10), "warn"),
        (TableRule("avg(price) < 9"), "warn"),
        (RowRule("price > 0"), "fail"),
        (RowRule("price < 9"), "fail"),
    ]


def test_every_other_kind_is_declared_by_its_function(tmp_path: Path) -> None:
    pipeline = load_folder(
        tmp_path,
        {
            "a.py": HEAD + "dp.create_streaming_table('trusted.customers', keys='id',\n"
            "    expect_all_or_drop={'id': dp.not_null('id')})\n"
            "dp.create_auto_cdc_flow('trusted.customers', 'changes', ['id'], 'ts',\n"
            "    apply_as_deletes=\"op = 'D'\",\n"
            "    except_column_list=['op'], stored_as_scd_type='2')\n"
            "dp.create_sink('alerts', 'kafka', {'topic': 'alerts', 'kafka.linger.ms': '5'})\n"
            "@dp.append_flow(target='alerts', name='big', once=True)\n"
            "def flow(): return dp.read_stream('sources.orders')\n"
            "@dp.temporary_view\n"
            "def changes(): return dp.read_stream('sources.orders')\n"
            "@dp.materialized_view(name='refined.n', refresh='*/5 * * * *')\n"
            "def n(): return dp.read('trusted.customers')\n"
            "@dp.merged_view(name='refined.m', merge={'n': 'sum'}, deduplicate_by=['id'])\n"
            "def m(): return dp.read_stream('sources.orders')\n"
        },
    )
    kinds = {name: type(dataset) for name, dataset in pipeline.datasets.items()}
    assert kinds == {
        "trusted.customers": StreamingTable,
        "alerts": Sink,
        "changes": TemporaryView,
        "refined.n": MaterializedView,
        "refined.m": MergedView,
    }
    sink = pipeline.datasets["alerts"]
    assert isinstance(sink, Sink)
    assert (sink.topic, sink.format, sink.options) == ("alerts", "kafka", {"kafka.linger.ms": "5"})
    changes, big = pipeline.flows
    assert changes.query == "SELECT * FROM STREAM(`changes`)"
    assert changes.changes is not None
    assert (changes.changes.scd_type, changes.changes.apply_as_deletes) == (2, "op = 'D'")
    assert (big.name, big.is_once) == ("big", True)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("@dp.table\ndef x(): ...", "a.py:2: 'x' has no zone; name it raw.x"),
        (
            "@dp.table(name='raw.x', nme='y')\ndef x(): ...",
            "a.py:2: table has no option nme; did you",
        ),
        ("@dp.table(name='raw.x', cluster_by=['a'])\ndef x(): ...", "use partition_cols"),
        (
            "@dp.table(name='raw.x', trigger='often')\ndef x(): ...",
            "trigger: 'often' is not an interval",
        ),
        ("@dp.table(name='raw.x')\ndef x(a): ...", "a.py:2: @table: x takes arguments"),
        ("@dp.materialized_view(name='raw.x', refresh='often')\ndef x(): ...", "refresh: 'often'"),
        ("@dp.append_flow(target='raw.y')\ndef f(): ...", "a.py:2: there is no raw.y to write to"),
        ("@dp.expect('a', 'b')\ndef f(): ...", "a.py:2: the expectation 'a' is about f, which"),
        ("dp.create_streaming_table('raw.x')", "a.py:2: nothing writes to raw.x"),
        (
            "@dp.table(name='raw.x', sequence_by='at')\ndef x(): pass",
            "name the key columns with KEYS",
        ),
        ("dp.create_sink('s')", "a.py:2: the sink s has no topic"),
        (
            "dp.create_sink('s', 'xml', topic='t')",
            "format: 'xml' is unknown; it can be json or kafka",
        ),
        ("dp.create_sink('s', topic='t', guarantee='maybe')", "exactly-once, idempotent"),
        (
            "@dp.merged_view(name='raw.m', merge={'n': 'avg'})\ndef m(): ...",
            "only by sum, min, max",
        ),
        ("dp.create_auto_cdc_flow('raw.x', 'y', [], 'ts')", "changes are applied by key"),
        ("dp.create_auto_cdc_flow('raw.x', 'y', ['a'], 3)", "write it as text"),
        ("dp.create_auto_cdc_flow('raw.x', 'y', ['a'], 'b', stored_as_scd_type=3)", "SCD type 3"),
        ("@dp.table(name='raw.x', realtime='5 seconds')\ndef x(): ...", "writes to topics only"),
        ("dp.table(name='raw.x')(3)", "a.py:2: @table decorates no function"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, code: str, message: str) -> None:
    assert any(message in line for line in told(problems_of(tmp_path, {"a.py": HEAD + code})))


def test_names_are_declared_once(tmp_path: Path) -> None:
    twice = "@dp.table(name='raw.x')\ndef x(): return dp.read_stream('sources.orders')\n"
    problems = told(problems_of(tmp_path, {"a.py": HEAD + twice, "b.py": HEAD + "\n" + twice}))
    assert problems == [
        "b.py:3: raw.x is declared already, at a.py:2; give one of them another name",
        "b.py:3: there is a flow raw.x already, at a.py:2; give one of them another name",
    ]


def test_flows_of_changes_share_their_table_with_no_others(tmp_path: Path) -> None:
    problems = problems_of(
        tmp_path,
        {
            "a.py": HEAD + "dp.create_streaming_table('raw.x')\n"
            "dp.create_auto_cdc_flow('raw.x', 'sources.orders', ['id'], 'ts', name='cdc')\n"
            "@dp.append_flow(target='raw.x')\n"
            "def f(): return dp.read_stream('sources.orders')\n"
        },
    )
    assert ["a.py:4: raw.x is kept by a flow of changes" in line for line in told(problems)] == [
        True
    ]


def test_flows_of_changes_into_one_table_have_one_key_and_one_type(tmp_path: Path) -> None:
    """ARC-4: by another key, or kept in another way, their rows would take each other's place."""
    flow = "dp.create_auto_cdc_flow('raw.x', 'sources.orders', ['{}'], 'ts', name='{}'{})\n"
    code = (
        "dp.create_streaming_table('raw.x')\n"
        + flow.format("id", "one", "")
        + flow.format("id", "same", ", apply_as_deletes='op = 1'")
        + flow.format("op", "two", ", stored_as_scd_type=2")
    )
    assert told(problems_of(tmp_path, {"a.py": HEAD + code})) == [
        f"a.py:5: two and one, at a.py:3, both keep raw.x: one has {differs}. Use the same in"
        " both, or write to another table"
        for differs in ("KEYS (op), the other (id)", "SCD TYPE 2, the other 1")
    ]


def test_a_flow_does_not_write_to_a_view(tmp_path: Path) -> None:
    problems = problems_of(
        tmp_path,
        {
            "a.py": HEAD + "@dp.materialized_view(name='raw.v')\ndef v(): ...\n"
            "@dp.append_flow(target='raw.v')\ndef f(): ...\n"
        },
    )
    assert "a.py:4: raw.v is a materialized view, which its own query fills" in told(problems)[0]


def test_a_declaration_outside_of_a_pipeline_is_refused_with_advice() -> None:
    with pytest.raises(PipelineError, match="headrace pipelines run FOLDER"):
        dp.table(name="raw.x")
    with pytest.raises(PipelineError, match="headrace pipelines run FOLDER"):
        dp.create_sink("x", topic="t")


def test_reading_outside_of_a_query_is_refused_with_advice() -> None:
    for ask in (lambda: dp.read("raw.x"), lambda: dp.read_stream("raw.x"), lambda: dp.spark.conf):
        with pytest.raises(PipelineError, match="inside the function"):
            ask()
