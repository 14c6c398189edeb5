"""Which queries take care of what cannot be read, and from which it is kept away."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.graph import consumers
from headrace.pipelines.analysing.reads import reads_of
from headrace.pipelines.analysing.unhandled_errors import unhandled
from tests.builders.declared_pipelines import load_folder

SETTINGS = """
[pipeline]
name = "errors"
[sources.orders]
format = "json"
schema = "id BIGINT"
[sources.prices]
format = "json"
schema = "id BIGINT"
[sources.plain]
"""
HEAD = "from pyspark.sql import functions as F\nfrom headrace import pipelines as dp\n"


def unhandled_of(place: Path, files: dict[str, str]) -> dict[str, list[str]]:
    pipeline = load_folder(place, files, SETTINGS)
    reads = {one.name: reads_of(one.query) for one in consumers(pipeline)}
    return {
        flow.name: sorted(unhandled(flow.query, flow.name, pipeline, reads))
        for flow in pipeline.flows
    }


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("SELECT id FROM STREAM(sources.orders)", ["orders"]),
        ("SELECT * FROM STREAM(sources.orders)", ["orders"]),
        ("SELECT id, explode(tags) AS tag FROM STREAM(sources.orders)", ["orders"]),
        ("SELECT id FROM STREAM(sources.orders) WHERE _error IS NULL", []),
        ("SELECT id, `_ERROR` FROM STREAM(sources.orders)", []),
        ("SELECT id, '_error' AS e FROM STREAM(sources.orders)", ["orders"]),
        ("SELECT value FROM STREAM(sources.plain)", []),
        (
            "SELECT a.id FROM STREAM(sources.orders) a JOIN STREAM(sources.prices) b USING (id)",
            ["orders", "prices"],
        ),
        ("SELECT a.id FROM STREAM(checked) a JOIN STREAM(sources.prices) b USING (id)", ["prices"]),
        ("SELECT id FROM STREAM(whole)", ["orders"]),
        ("SELECT id FROM STREAM(whole) WHERE _error IS NULL", []),
        ("SELECT id FROM STREAM(raw.o)", []),
    ],
)
def test_a_query_that_names_the_error_handles_it(
    query: str, sources: list[str], tmp_path: Path
) -> None:
    """ARC-4: also where that is done in a view, on the way from the topic."""
    sql = f"""
    CREATE TEMPORARY VIEW checked AS SELECT id FROM STREAM(sources.orders) WHERE _error IS NULL;
    CREATE TEMPORARY VIEW whole AS SELECT * FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.o AS SELECT id, _error FROM STREAM(sources.orders);
    CREATE STREAMING TABLE staging.x AS {query};
    """
    assert unhandled_of(tmp_path, {"a.sql": sql})["staging.x"] == sources


@pytest.mark.parametrize(
    ("body", "sources"),
    [
        ("return dp.read_stream('sources.orders').where('id > 1')", ["orders"]),
        ("return dp.read_stream('sources.orders').where('_error IS NULL')", []),
        (
            "rows = dp.read_stream('sources.orders')\n    return rows.where(~rows._error)",
            [],
        ),
        (
            "rows = dp.read_stream('sources.orders')\n    return rows.where('last_error > 0')",
            ["orders"],
        ),
        ("return readable(dp.read_stream('sources.orders'))", []),
        ("return (lambda rows: rows.drop('_error'))(dp.read_stream('sources.orders'))", []),
    ],
)
def test_handling_is_found_in_called_functions(
    body: str, sources: list[str], tmp_path: Path
) -> None:
    text = (
        f"{HEAD}\n\ndef readable(rows):\n    return rows.where(F.col('_error').isNull())\n\n\n"
        f"@dp.table(name='staging.x')\ndef x():\n    {body}\n"
    )
    assert unhandled_of(tmp_path, {"a.py": text}) == {"staging.x": sources}
