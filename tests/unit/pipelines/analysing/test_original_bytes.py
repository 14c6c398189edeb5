"""Which queries can bring the bytes of their records along."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.original_bytes import (
    names_column,
    needs_bytes,
    source_behind,
    with_payload,
)
from headrace.pipelines.analysing.reads import Read, reads_of
from headrace.pipelines.model import Location, Source
from tests.builders.declared_pipelines import load_folder

DECODED = Source("orders", Location("pipeline.toml", 1), format="json", schema="id BIGINT")
BYTES = Source("orders", Location("pipeline.toml", 1))


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (
            "SELECT id FROM STREAM(sources.orders)",
            "SELECT id, _payload FROM STREAM(sources.orders)",
        ),
        (
            "SELECT * EXCEPT (x), extract(day FROM ts) d FROM STREAM(sources.orders) o",
            "SELECT * EXCEPT (x), extract(day FROM ts) d, _payload,"
            " struct(`timestamp` AS timestamp) AS _kept_record FROM STREAM(sources.orders) o",
        ),
        (
            "SELECT id FROM STREAM(sources.orders) WHERE id > 1",
            "SELECT id, _payload FROM STREAM(sources.orders) WHERE id > 1",
        ),
        (
            "SELECT id -- FROM the topic\nFROM STREAM(sources.orders)",
            "SELECT id, _payload -- FROM the topic\nFROM STREAM(sources.orders)",
        ),
    ],
)
def test_a_query_that_only_chooses_gets_one_more_column(query: str, kept: str) -> None:
    assert with_payload(query, DECODED) == kept


def test_a_column_that_is_named_is_known() -> None:
    query = "SELECT id, `_PAYLOAD` FROM STREAM(sources.orders) -- _error"
    assert [names_column(query, name) for name in ("_error", "_payload")] == [False, True]


def test_bytes_that_are_not_decoded_are_the_value() -> None:
    query = "SELECT CAST(value AS STRING) AS text FROM STREAM(sources.orders)"
    assert with_payload(query, BYTES) == (
        "SELECT CAST(value AS STRING) AS text, value AS _payload FROM STREAM(sources.orders)"
    )


@pytest.mark.parametrize(
    ("chosen", "beside"),
    [
        ("upper(`key`) AS name", "`key` AS key"),
        ("2 * size(headers) AS size", "`headers` AS headers"),
        (
            "o.*",
            "`key` AS key, `timestamp` AS timestamp, `timestampType` AS timestampType,"
            " `headers` AS headers",
        ),
    ],
)
def test_record_columns_used_by_a_query_are_kept_beside_the_bytes(chosen: str, beside: str) -> None:
    """ARC-4: a redrive runs the query on these columns again."""
    assert with_payload(f"SELECT {chosen} FROM STREAM(sources.orders) o", BYTES) == (
        f"SELECT {chosen}, value AS _payload, struct({beside}) AS _kept_record"
        " FROM STREAM(sources.orders) o"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT id FROM STREAM(sources.orders)",
        "SELECT id, count(*) AS n FROM STREAM(sources.orders) GROUP BY id",
        "SELECT id, count(*) AS n FROM STREAM(sources.orders) WHERE id > 1 GROUP BY ALL",
        "SELECT id FROM STREAM(sources.orders) JOIN raw.x USING (id)",
        "SELECT id FROM STREAM(sources.orders), raw.x",
        "SELECT id FROM STREAM(sources.orders) UNION ALL SELECT id FROM STREAM(sources.orders)",
        "SELECT id FROM (SELECT id FROM STREAM(sources.orders))",
        "SELECT id, tag FROM STREAM(sources.orders) LATERAL VIEW explode(tags) t AS tag",
        "SELECT id FROM STREAM(raw.orders)",
        "SELECT id FROM sources.orders",
        "WITH x AS (SELECT 1) SELECT id FROM STREAM(sources.orders)",
        "FROM STREAM(sources.orders) |> SELECT id",
        "SELECT '",
    ],
)
def test_other_queries_are_left_as_they_are(query: str) -> None:
    assert with_payload(query, DECODED) is None


def test_bytes_are_wanted_where_expectations_send_rows_to_quarantine(tmp_path: Path) -> None:
    sql = """
    CREATE STREAMING TABLE raw.a (CONSTRAINT c EXPECT (id > 1) ON VIOLATION QUARANTINE ROW)
    AS SELECT id FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.b (CONSTRAINT c EXPECT (id > 1) ON VIOLATION DROP ROW)
    AS SELECT id FROM STREAM(sources.orders);
    """
    pipeline = load_folder(tmp_path, {"a.sql": sql})
    assert [needs_bytes(flow, pipeline) for flow in pipeline.flows] == [True, False]
    reads = [Read("sources.orders", is_stream=True)]
    assert source_behind(pipeline.flows[0].query, pipeline, reads) == pipeline.sources["orders"]


@pytest.mark.parametrize(
    ("body", "is_kept"),
    [
        ("return dp.read_stream('sources.orders')", True),
        ("return dp.read_stream('sources.orders').where('id > 1')", True),
        ("return dp.read_stream('sources.orders').where('_payload IS NULL')", False),
        ("return (lambda rows: rows['_payload'])(dp.read_stream('sources.orders'))", False),
        ("return dp.read_stream('sources.orders').join(dp.read('raw.x'))", False),
        ("return dp.read_stream('raw.x')", False),
    ],
)
def test_a_function_over_one_topic_may_return_its_bytes(
    tmp_path: Path, body: str, is_kept: bool
) -> None:
    text = f"from headrace import pipelines as dp\n@dp.table(name='raw.x')\ndef x():\n    {body}\n"
    pipeline = load_folder(tmp_path, {"a.py": text})
    query = pipeline.flows[0].query
    assert (source_behind(query, pipeline, reads_of(query)) is not None) == is_kept
