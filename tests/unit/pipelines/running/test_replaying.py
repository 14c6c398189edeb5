"""What a replay knows of the tables that it compares."""

from pathlib import Path

import pytest

from headrace.pipelines.model import Pipeline
from headrace.pipelines.running.replaying import keys_of
from tests.declared_pipelines import load_folder

TABLES = """
CREATE STREAMING TABLE raw.o AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.newest KEYS (id) AS SELECT * FROM STREAM(raw.o);
CREATE STREAMING TABLE trusted.changed;
CREATE FLOW c AS AUTO CDC INTO trusted.changed FROM STREAM(raw.o) KEYS (id) SEQUENCE BY ts;
CREATE STREAMING TABLE trusted.versions;
CREATE FLOW v AS AUTO CDC INTO trusted.versions FROM STREAM(raw.o) KEYS (id) SEQUENCE BY ts
    STORED AS SCD TYPE 2;
CREATE MERGED VIEW refined.n MERGE (n SUM) AS
    SELECT id, op, count(*) AS n FROM STREAM(raw.o) GROUP BY id, op;
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load_folder(tmp_path, {"tables.sql": TABLES})


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        ("raw.o", ()),
        ("quarantine.raw__o", ()),
        ("trusted.newest", ("id",)),
        ("trusted.changed", ("id",)),
        ("trusted.versions", ()),
        ("refined.n", ("id", "op")),
    ],
)
def test_rows_are_found_again_by_what_a_table_has_once(
    pipeline: Pipeline, table: str, keys: tuple[str, ...]
) -> None:
    assert keys_of(pipeline, table, ["id", "op", "n"]) == keys
