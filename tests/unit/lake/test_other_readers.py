"""Tables as other libraries for Delta Lake read them."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headrace.lake.catalog import Lake
from headrace.lake.rewriting import evolve, optimize
from headrace.lake.tables import Table
from tests.builders.lakes import appended

NARROW = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("name", pa.string())])
WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)
DAYS = [dt.date(2026, 3, 1), dt.date(2026, 3, 2), None]
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)

Rows = list[dict[str, Any]]


def by_polars(place: Path, version: int | None) -> Rows:
    found: Rows = polars.read_delta(str(place), version=version).to_dicts()
    return found


def by_polars_scan(place: Path, version: int | None) -> Rows:
    """Lazily, with a filter that the log's bounds and partitions may answer."""
    rows = polars.scan_delta(str(place), version=version).filter(polars.col("id") >= 0)
    found: Rows = rows.collect().to_dicts()
    return found


def by_duckdb(place: Path, version: int | None) -> Rows:
    with duckdb.connect() as database:
        database.register("orders", DeltaTable(str(place), version=version).to_pyarrow_dataset())
        found: Rows = database.sql("FROM orders").to_arrow_table().to_pylist()
        return found


READERS = pytest.mark.parametrize("read", [by_polars, by_polars_scan, by_duckdb])
Read = Callable[[Path, int | None], Rows]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Partitioned, appended to, widened, merged, and with rows taken away."""
    table = Lake(tmp_path).create("trusted.orders", NARROW, partition_by=["day"])
    for start in (0, 10, 20):
        ids = range(start, start + 10)
        appended(table, [{"id": one, "day": DAYS[one % 3], "name": f"n{one}"} for one in ids])
    evolve(table, WIDE)
    late = {"id": 1 << 40, "day": DAYS[0], "name": "late", "at": NOON, "tags": ["a", None]}
    appended(table, [late])
    changed: Rows = [{"id": 3, "day": DAYS[0], "name": "changed", "at": NOON, "tags": []}]
    table.upsert(pa.Table.from_pylist(changed, schema=WIDE), ["id"])
    table.delete("id IN (7, 8)")
    return table


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: int(row["id"]))


@READERS
def test_other_readers_return_our_rows(table: Table, read: Read) -> None:
    ours = ordered(table.rows().to_pylist())
    assert [row["id"] for row in ours] == [*range(7), *range(9, 30), 1 << 40]
    assert ours[3]["name"] == "changed"
    assert ordered(read(table.place, None)) == ours


@READERS
def test_other_readers_read_a_table_with_joined_files(table: Table, read: Read) -> None:
    before = ordered(table.rows().to_pylist())
    joined = optimize(table)
    assert joined.files_after < joined.files_before
    assert ordered(read(table.place, None)) == before


@READERS
def test_other_readers_read_an_older_version(table: Table, read: Read) -> None:
    assert [row["id"] for row in ordered(read(table.place, 2))] == list(range(20))
