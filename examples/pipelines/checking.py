"""Compares the results of a pipeline over an example's records with its expected.toml.

`[rows]` has the number of rows of tables and merged views, `[topics]` the number of records in a
sink's topic, and each `[[answers]]` a query over the tables with its result.
"""

import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from headrace.client.reader import RecordReader, Start
from headrace.lake.catalog import Lake


def differences(directory: Path, lake: Lake, bootstrap: str) -> list[str]:
    """Return the differences from the expected results."""
    expected = tomllib.loads((directory / "expected.toml").read_text(encoding="utf-8"))
    found = []
    with duckdb.connect() as tables:
        load(lake, tables)
        for name, count in expected.get("rows", {}).items():
            found += _difference(name, count, _ask(tables, f"SELECT count(*) FROM {name}")[0][0])
        for answer in expected.get("answers", []):
            found += _difference(answer["query"], answer["rows"], _ask(tables, answer["query"]))
    for topic, count in expected.get("topics", {}).items():
        found += _difference(f"the topic {topic}", count, record_count(bootstrap, topic))
    return found


def load(lake: Lake, tables: duckdb.DuckDBPyConnection) -> None:
    """Return all tables and merged views of a lake by name."""
    tables.execute("SET TimeZone = 'UTC'")
    rows = {name: lake.table(name).rows() for name in lake.names()}
    rows |= {name: lake.merged_rows(name) for name in lake.views()}
    for name, content in rows.items():
        tables.execute(f"CREATE SCHEMA IF NOT EXISTS {name.partition('.')[0]}")
        tables.register("content", content)
        tables.execute(f"CREATE TABLE {name} AS SELECT * FROM content")


def record_count(bootstrap: str, topic: str) -> int:
    """Return the number of committed records of a topic."""
    reads = RecordReader(bootstrap, topic, {"isolation.level": "read_committed"})
    with closing(reads) as reader:
        reader.assign(Start(from_beginning=True), reader.partitions())
        count = 0
        while not reader.is_at_end:
            count += len(reader.read())
        return count


def _ask(tables: duckdb.DuckDBPyConnection, query: str) -> list[list[Any]]:
    return [list(row) for row in tables.execute(query).fetchall()]


def _difference(what: str, expected: object, found: object) -> list[str]:
    return [] if found == expected else [f"{what}: expected {expected}, found {found}"]
