"""Tables that only grow: a rule in the log, which we and every other writer of Delta obey."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.errors import AppendOnly
from headrace.lake.metadata import APPEND_ONLY
from headrace.lake.rewriting import evolve, optimize
from headrace.lake.tables import Table
from tests.builders.lakes import ids_of, numbers, written

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create("raw.orders", SCHEMA, properties=APPEND_ONLY)
    numbers(made, 1, 2, batch=0)
    numbers(made, 3, batch=1)
    return made


def replaced(table: Table) -> None:
    table.replace(written(table, [{"id": 9, "name": "n"}]))


def amended(table: Table) -> None:
    table.amend(written(table, [{"id": 9, "name": "n"}]), Token("writer", 1))


def merged(table: Table) -> None:
    table.upsert(pa.Table.from_pylist([{"id": 1, "name": "other"}], schema=table.schema), ["id"])


@pytest.mark.parametrize(
    "change",
    [
        replaced,
        amended,
        merged,
        lambda table: table.delete("id = 1"),
        lambda table: table.restore(1),
    ],
)
def test_rows_of_an_append_only_table_cannot_change(
    table: Table, change: Callable[[Table], object]
) -> None:
    """ARC-4: stored rows are never edited."""
    version = table.version
    with pytest.raises(AppendOnly, match=r"raw\.orders would change or remove rows"):
        change(table)
    assert (table.version, ids_of(table)) == (version, [1, 2, 3])


def test_other_writers_refuse_as_well(table: Table) -> None:
    """ARC-4: the rule is Delta's own, in the log."""
    other = DeltaTable(str(table.place))
    with pytest.raises(DeltaError, match="append-only"):
        other.delete("id = 1")
    assert ids_of(table) == [1, 2, 3]


def test_commits_that_only_rearrange_rows_are_allowed(table: Table) -> None:
    wider = pa.schema([("id", pa.int64()), ("name", pa.string()), ("more", pa.string())])
    evolve(table, wider)
    assert optimize(table).files_after == 1
    table.vacuum()
    numbers(table, 4, batch=2)
    assert (table.schema, ids_of(table)) == (wider, [1, 2, 3, 4])


def test_rows_with_new_keys_may_come_by_key(table: Table) -> None:
    table.upsert(pa.Table.from_pylist([{"id": 7, "name": "n"}], schema=table.schema), ["id"])
    assert ids_of(table) == [1, 2, 3, 7]


def test_the_next_generation_is_built_and_the_old_one_dropped(lake: Lake, table: Table) -> None:
    lake.create("raw.orders", SCHEMA, generation=2, properties=APPEND_ONLY)
    lake.switch({"raw.orders": 2})
    lake.drop("raw.orders", 1)
    assert ids_of(lake.table("raw.orders")) == []


@pytest.mark.parametrize(
    ("schema", "features"),
    [(SCHEMA, None), (SCHEMA.append(pa.field("at", pa.timestamp("us"))), "appendOnly")],
)
def test_an_existing_table_becomes_append_only(
    lake: Lake, schema: pa.Schema, features: str | None
) -> None:
    """A table of an older release gets the rule; where features are named, it is named too."""
    table = lake.create("raw.old", schema)
    numbers(table, 1)
    table.delete("id = 1")
    version = table.set_properties(APPEND_ONLY)
    numbers(table, 2)
    with pytest.raises(AppendOnly):
        table.delete("id = 2")
    assert table.set_properties(APPEND_ONLY) == table.version == version + 1
    named = DeltaTable(str(table.place)).protocol().writer_features
    assert named is None if features is None else features in (named or ())
