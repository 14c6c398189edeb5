"""Two tables compared by their rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake import table_comparison
from headrace.lake.catalog import Lake
from headrace.lake.table_comparison import Contents, compare, compare_rows
from headrace.lake.tables import Table
from tests.builders.lakes import appended, numbers

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": f"n{number % 3}", "price": 0.5, "tags": ["a", None], **more}


def tables(lake: Lake, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> tuple[Table, Table]:
    """The same table in two generations, each row of the second in a commit of its own."""
    before = lake.create("raw.o", SCHEMA)
    after = lake.create("raw.o", SCHEMA, generation=2, partition_by=["name"])
    appended(before, old)
    for one in new:
        appended(after, [one])
    return before, after


def test_the_same_rows_in_another_order_and_other_files_are_equal(lake: Lake) -> None:
    rows = [row(1), row(2, name=None, price=None), row(2, name=None, price=None), row(3, tags=None)]
    found = compare(*tables(lake, rows, rows[::-1]))
    assert found.is_equal
    assert (found.rows_before, found.rows_after) == (4, 4)


def test_as_many_rows_with_other_values_differ_and_the_column_is_named(lake: Lake) -> None:
    pair = tables(lake, [row(n) for n in range(4)], [row(n, price=n) for n in range(4)])
    found = compare(*pair, keys=["id"])
    assert not found.is_equal
    assert (found.changed, found.only_before, found.only_after) == (4, 0, 0)
    assert found.columns == {"price": 4}
    assert found.examples[0] == ("-", row(found.examples[0][1]["id"]))
    assert {sign for sign, _ in found.examples} == {"-", "+"}


def test_without_a_key_no_row_is_taken_for_another_and_no_column_is_named(lake: Lake) -> None:
    found = compare(*tables(lake, [row(1), row(2)], [row(1), row(2, price=7)]))
    assert (found.changed, found.only_before, found.only_after) == (0, 1, 1)
    assert found.columns == {}


def test_a_removed_row_is_no_change_of_any_column(lake: Lake) -> None:
    found = compare(*tables(lake, [row(1), row(2)], [row(2)]), keys=["id"])
    assert (found.changed, found.only_before, found.only_after) == (0, 1, 0)
    assert found.columns == {}


def test_a_key_that_is_null_has_its_counterpart_too(lake: Lake) -> None:
    pair = tables(lake, [row(1, name=None)], [row(2, name=None)])
    found = compare(*pair, keys=["name"])
    assert (found.changed, found.only_before, found.only_after) == (1, 0, 0)
    assert found.columns == {"id": 1}


def refused(offset: int | None, reason: str) -> dict[str, Any]:
    return {"topic": "o", "partition": 0, "offset": offset, "reason": reason, "payload": b"x"}


def by_record(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Contents:
    kinds = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    schema = pa.schema([*kinds.items(), ("reason", pa.string()), ("payload", pa.binary())])
    return compare_rows(*(pa.Table.from_pylist(rows, schema) for rows in (old, new)))


def test_rows_of_one_record_are_counterparts_where_the_table_has_no_key() -> None:
    """Only differing columns are named, and an additional row is listed separately."""
    found = by_record([refused(1, "late")], [refused(1, "dear"), refused(2, "dear")])
    assert (found.changed, found.only_before, found.only_after) == (1, 0, 1)
    assert found.columns == {"reason": 1}


@pytest.mark.parametrize("offset", [None, 1])
def test_rows_of_an_unknown_or_a_shared_record_are_no_counterparts(offset: int | None) -> None:
    old = [refused(offset, "late")] * (1 if offset is None else 2)
    found = by_record(old, [refused(offset, "dear")])
    assert (found.changed, found.only_before, found.only_after) == (0, len(old), 1)
    assert found.columns == {}


def test_a_duplicate_row_is_found(lake: Lake) -> None:
    found = compare(*tables(lake, [row(1), row(1)], [row(1), row(1), row(1)]))
    assert (found.only_before, found.only_after) == (0, 1)


def test_swapped_values_are_found(lake: Lake) -> None:
    found = compare(
        *tables(lake, [row(1, price=1), row(2, price=2)], [row(1, price=2), row(2, price=1)]),
        keys=["id"],
    )
    assert (found.changed, found.columns) == (2, {"price": 2})


def test_a_column_can_be_ignored(lake: Lake) -> None:
    pair = tables(lake, [row(1, price=1)], [row(1, price=2)])
    assert compare(*pair, ignored=["price"]).is_equal


def test_added_removed_and_retyped_columns_are_reported(lake: Lake) -> None:
    before = lake.create("raw.o", pa.schema([("id", pa.int32()), ("old", pa.string())]))
    after = lake.create(
        "raw.o", pa.schema([("id", pa.int64()), ("new", pa.string())]), generation=2
    )
    found = compare(before, after)
    assert found.columns_added == ("new",)
    assert found.columns_removed == ("old",)
    assert found.columns_retyped == ("id",)
    assert not found.is_equal


def test_tables_without_a_common_column_are_compared_by_their_rows(lake: Lake) -> None:
    before = lake.create("raw.o", pa.schema([("a", pa.int64())]))
    after = lake.create("raw.o", pa.schema([("b", pa.int64())]), generation=2)
    appended(before, [{"a": 1}, {"a": 2}])
    found = compare(before, after)
    assert (found.only_before, found.only_after) == (2, 0)


def test_rows_that_exceed_the_memory_are_compared_on_disk(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_comparison, "MEMORY_MAX", "32MB")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    before, after = lake.create("raw.o", schema), lake.create("raw.o", schema, generation=2)
    numbers(before, *range(300_000))
    numbers(after, *range(1, 300_001))
    found = compare(before, after, keys=["id"])
    assert (found.only_before, found.only_after) == (1, 1)
