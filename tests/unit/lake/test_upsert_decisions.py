"""Rows by key: replaced, merged and deleted, each key once."""

import functools
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.errors import LakeError
from headrace.lake.rewriting import optimize
from headrace.lake.tables import Table
from headrace.lake.upsert_decisions import Upsert
from tests.builders.lakes import appended

SCHEMA = pa.schema(
    [("word", pa.string()), ("hour", pa.int32()), ("n", pa.int64()), ("most", pa.float64())]
)
MERGE = {"n": "sum", "most": "max"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Lake(tmp_path).create("refined.words", SCHEMA)


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, value, strict=True)) for value in values], schema=SCHEMA
    )


def content(table: Table) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in table.rows().to_pylist()}


def test_a_row_replaces_the_one_with_its_key(table: Table) -> None:
    table.upsert(rows(("a", 1, 1, 0.5), ("b", 1, 2, None)), ["word", "hour"])
    table.upsert(rows(("a", 1, 9, None), ("a", 2, 3, 1.0)), ["word", "hour"])
    assert content(table) == {("a", 1, 9, None), ("b", 1, 2, None), ("a", 2, 3, 1.0)}


def test_partial_aggregates_are_merged(table: Table) -> None:
    table.upsert(rows(("a", 1, 1, 0.5), ("b", 1, 2, None)), ["word", "hour"], merge=MERGE)
    table.upsert(
        rows(("a", 1, 9, 0.25), ("b", 1, None, 7.0), ("a", 1, 5, 2.0)),
        ["word", "hour"],
        merge=MERGE,
    )
    assert content(table) == {("a", 1, 15, 2.0), ("b", 1, 2, 7.0)}


def test_null_is_a_key_like_any_other(table: Table) -> None:
    for _ in range(2):
        table.upsert(rows((None, 1, 1, 1.0), ("a", None, 1, 1.0)), ["word", "hour"], merge=MERGE)
    assert content(table) == {(None, 1, 2, 1.0), ("a", None, 2, 1.0)}


def test_rows_marked_for_deletion_are_deleted_and_not_inserted(table: Table) -> None:
    table.upsert(rows(("a", 1, 1, 0.5), ("b", 1, 2, 0.5)), ["word", "hour"])
    changes = rows(("a", 1, 0, None), ("c", 1, 0, None), ("b", 1, 3, 0.5))
    marked = changes.append_column("_gone", pa.array([True, True, None]))
    table.upsert(marked, ["word", "hour"], delete="_gone")
    assert content(table) == {("b", 1, 3, 0.5)}


def test_a_batch_is_merged_once(table: Table) -> None:
    for _ in range(2):
        table.upsert(rows(("a", 1, 1, 1.0)), ["word", "hour"], Token("w", 3), merge=MERGE)
    assert content(table) == {("a", 1, 1, 1.0)}


def test_a_batch_that_changes_nothing_leaves_its_token(table: Table) -> None:
    gone = rows(("x", 1, 0, None)).append_column("_gone", pa.array([True]))
    table.upsert(gone, ["word", "hour"], Token("w", 1), delete="_gone")
    table.upsert(rows(), ["word", "hour"], Token("w", 2))
    assert table.has(Token("w", 2))
    assert content(table) == set()


def test_two_rows_with_one_key_are_refused_by_the_key(table: Table) -> None:
    with pytest.raises(LakeError, match=r"'word': 'a', 'hour': 1\} appears 2 times"):
        table.upsert(rows(("a", 1, 1, 1.0), ("a", 1, 2, 2.0)), ["word", "hour"])


def test_names_with_capitals_blanks_and_quotes_are_taken_as_they_are(tmp_path: Path) -> None:
    schema = pa.schema([("The Key", pa.string()), ('n"1', pa.int64()), ("Cap", pa.int64())])
    table = Lake(tmp_path).create("refined.odd", schema)
    part = pa.table({"The Key": ["a"], 'n"1': [1], "Cap": [5]}, schema=schema)
    for _ in range(2):
        table.upsert(part, ["The Key"], merge={'n"1': "sum", "Cap": "min"})
    assert table.rows().to_pylist() == [{"The Key": "a", 'n"1': 2, "Cap": 5}]


def test_merging_in_a_partitioned_table_keeps_other_partitions(tmp_path: Path) -> None:
    schema = pa.schema([("day", pa.date32()), ("k", pa.string()), ("n", pa.int64())])
    table = Lake(tmp_path).create("refined.days", schema, partition_by=["day"])
    days = pa.array([20_000, 20_001, None], pa.int32()).cast(pa.date32())
    part = pa.table({"day": days, "k": ["a", "a", "a"], "n": [1, 2, 3]}, schema=schema)
    table.upsert(part, ["day", "k"], merge={"n": "sum"})
    table.upsert(part.slice(1), ["day", "k"], merge={"n": "sum"})
    found = {(row["day"], row["n"]) for row in table.rows().to_pylist()}
    assert found == set(zip(days.to_pylist(), [1, 4, 6], strict=True))


@pytest.mark.parametrize(
    ("keys", "merge", "delete", "message"),
    [
        ([], None, None, "name its columns"),
        (["wrod"], None, None, "no column wrod"),
        (
            ["word"],
            {"n": "avg", "most": "max", "hour": "max"},
            None,
            "avg is not a valid aggregate",
        ),
        (["word"], MERGE, None, "column hour has no aggregate"),
        (["word"], None, "n", "use another name"),
    ],
)
def test_invalid_merges_are_rejected(
    table: Table, keys: list[str], merge: dict[str, str] | None, delete: str | None, message: str
) -> None:
    with pytest.raises(LakeError, match=message):
        table.upsert(rows(("a", 1, 1, 1.0)), keys, merge=merge, delete=delete)


def test_merges_of_two_processes_at_once_are_all_counted(table: Table) -> None:
    others = [Table(table.name, table.place) for _ in range(2)]

    def merge(other: Table) -> None:
        for _ in range(8):
            other.upsert(rows(("a", 1, 1, 1.0)), ["word", "hour"], merge=MERGE)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(merge, others))
    assert content(table) == {("a", 1, 16, 1.0)}


def test_appending_merging_and_joining_at_once_lose_nothing(table: Table) -> None:
    def append() -> None:
        own = Table(table.name, table.place)
        for number in range(10):
            appended(own, [{"word": f"w{number}", "hour": 0, "n": 1, "most": None}])

    def merge() -> None:
        own = Table(table.name, table.place)
        for _ in range(10):
            own.upsert(rows(("a", 1, 1, None)), ["word", "hour"], merge=MERGE)

    def join() -> None:
        own = Table(table.name, table.place)
        for _ in range(5):
            optimize(own)

    with ThreadPoolExecutor(3) as pool:
        for running in [pool.submit(work) for work in (append, merge, join)]:
            running.result()
    assert content(table) == {("a", 1, 10, None), *((f"w{n}", 0, 1, None) for n in range(10))}


def merged_parts(of: pa.DataType, how: str, *parts: Any) -> Any:
    """Return the result of merging parts of an aggregate one after the other."""
    upsert = Upsert(("key",), merge={"value": how})
    tables = [pa.table({"key": ["a"], "value": pa.array([part], of)}) for part in parts]
    return functools.reduce(lambda old, new: upsert.merged(new, old).rows, tables)["value"][0]


@pytest.mark.parametrize("precision", [9, 37, 38])
def test_sums_of_decimals_are_exact_up_to_all_digits_of_their_column(precision: int) -> None:
    of = pa.decimal128(precision, 2)
    most = Decimal(10**precision - 1).scaleb(-2, Context(prec=precision))
    assert merged_parts(of, "sum", Decimal("1.25"), Decimal("3.50")).as_py() == Decimal("4.75")
    assert merged_parts(of, "sum", most.copy_negate(), most, None, most).as_py() == most
    with pytest.raises(LakeError, match="a sum in column value does not fit into decimal"):
        merged_parts(of, "sum", most, Decimal("0.01"))
