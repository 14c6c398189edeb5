"""Merged views: batch and speed layer make one table, nothing counted twice."""

import functools
import itertools
import math
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import Token
from headrace.lake.errors import LakeError, NoSuchTable, UnusableView
from headrace.lake.lineage import Lineage
from headrace.lake.merged_views import (
    COMMIT_VERSION,
    check_columns,
    covered_version,
    input_of,
    merged_select,
)
from headrace.lake.reading import run_sql
from headrace.lake.rewriting import optimize
from headrace.lake.upsert_decisions import Upsert
from tests.builders.lakes import written

COLUMNS = [("word", pa.string()), ("n", pa.int64()), ("most", pa.int32())]
VIEW = MergedViewEntry(
    "refined.words",
    ("word",),
    {"n": "sum", "most": "max"},
    "refined.words__batch",
    "refined.words__speed",
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.create(VIEW.batch, pa.schema(COLUMNS))
    lake.create(VIEW.speed, pa.schema([*COLUMNS, ("_commit_version", pa.int64())]))
    lake.put_view(VIEW.name, VIEW)
    return lake


def add_speed(lake: Lake, *rows: tuple[str | None, int, int, int]) -> None:
    table = lake.table(VIEW.speed)
    names = table.schema.names
    table.append(written(table, [dict(zip(names, row, strict=True)) for row in rows]))


def run_batch(lake: Lake, covered: int, *rows: tuple[str | None, int, int]) -> None:
    table = lake.table(VIEW.batch)
    files = written(table, [dict(zip(table.schema.names, row, strict=True)) for row in rows])
    table.replace(files, Token("batch", covered), Lineage(inputs={"raw.text": (-1, covered)}))


def content(lake: Lake) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in lake.merged_rows(VIEW.name).to_pylist()}


def test_before_the_first_batch_run_all_is_from_the_speed_layer(lake: Lake) -> None:
    """ARC-1"""
    add_speed(lake, ("a", 1, 5, 1), ("a", 2, 7, 2), ("b", 1, 1, 2))
    assert content(lake) == {("a", 3, 7), ("b", 1, 1)}


def test_rows_that_the_batch_layer_covers_are_not_counted_again(lake: Lake) -> None:
    """ARC-1"""
    add_speed(lake, ("a", 1, 5, 1), ("a", 2, 7, 2), (None, 4, 4, 3))
    run_batch(lake, 2, ("a", 3, 7))
    assert content(lake) == {("a", 3, 7), (None, 4, 4)}
    add_speed(lake, ("a", 10, 1, 4))
    assert content(lake) == {("a", 13, 7), (None, 4, 4)}


def test_a_batch_run_may_be_ahead_of_the_speed_layer(lake: Lake) -> None:
    run_batch(lake, 9, ("a", 30, 7))
    add_speed(lake, ("a", 1, 5, 8), ("a", 2, 7, 9))
    assert content(lake) == {("a", 30, 7)}


def test_the_view_has_the_types_of_its_batch_table(lake: Lake) -> None:
    add_speed(lake, ("a", 1, 5, 1))
    assert lake.merged_rows(VIEW.name).schema.types == [pa.string(), pa.int64(), pa.int32()]


def test_rewriting_and_restoring_keep_the_covered_version_of_a_batch_table(lake: Lake) -> None:
    run_batch(lake, 2, ("a", 3, 7))
    run_batch(lake, 5, ("a", 4, 7))
    batch = lake.table(VIEW.batch)
    optimize(batch)
    assert covered_version(batch) == 5
    batch.restore(1)
    assert covered_version(batch) == 2
    assert input_of(batch) == "raw.text"


def test_the_layers_are_read_at_fixed_versions(lake: Lake) -> None:
    add_speed(lake, ("a", 1, 5, 1))
    run_batch(lake, 1, ("a", 1, 5))
    now = lake.layers(VIEW)
    assert (now.batch_version, now.covered_version, now.speed_version) == (1, 1, 1)


def test_a_batch_table_of_two_inputs_is_refused(lake: Lake) -> None:
    lineage = Lineage(inputs={"raw.a": (0, 1), "raw.b": (0, 1)})
    lake.table(VIEW.batch).append([], Token("batch", 0), lineage)
    with pytest.raises(LakeError, match="an aggregate of one"):
        lake.merged_rows(VIEW.name)


def test_a_misspelt_view_is_named(lake: Lake) -> None:
    with pytest.raises(NoSuchTable, match=r"did you mean refined\.words"):
        lake.view("refined.word")


def test_a_view_that_does_not_fit_its_tables_is_refused() -> None:
    view = MergedViewEntry("refined.v", ("k",), {"n": "sum"}, "refined.b", "refined.s")
    with pytest.raises(UnusableView, match=r"_commit_version, which refined\.s lacks"):
        check_columns(view, ["k", "n"], ["k", "n"])
    with pytest.raises(UnusableView, match=r"n, which refined\.b lacks"):
        check_columns(view, ["k"], ["k", "n", "_commit_version"])
    odd = MergedViewEntry("refined.v", ("k",), {"n": "median"}, "refined.b", "refined.s")
    with pytest.raises(UnusableView, match="median"):
        check_columns(odd, ["k", "n"], ["k", "n", "_commit_version"])


@pytest.mark.parametrize("how", ["min", "max"])
def test_nan_is_above_all_numbers_in_kappa_and_in_lambda_as_in_spark(how: str) -> None:
    """ARC-1: every way to cut an aggregate into three parts, each under a key of its own."""
    cuts = list(itertools.product([None, math.nan, math.inf, -math.inf, 5.0], repeat=3))
    keys = pa.array(range(len(cuts)))
    rounds = [pa.table({"word": keys, "most": pa.array(part)}) for part in zip(*cuts, strict=True)]
    upsert = Upsert(("word",), merge={"most": how})
    by_kappa = functools.reduce(lambda old, new: upsert.merged(new, old).rows, rounds)
    view = MergedViewEntry("refined.words", ("word",), {"most": how}, "batch", "speed")
    speed = pa.concat_tables(rounds[1:])
    speed = speed.append_column(COMMIT_VERSION, pa.repeat(7, speed.num_rows))
    by_lambda = run_sql(
        merged_select(view, 6, "batch", "speed"), {"batch": rounds[0], "speed": speed}
    )
    expected = [spark_aggregate(how, cut) for cut in cuts]
    assert by_kappa.sort_by("word")["most"].to_pylist() == pytest.approx(expected, nan_ok=True)
    assert by_lambda.sort_by("word")["most"].to_pylist() == pytest.approx(expected, nan_ok=True)


def spark_aggregate(how: str, values: Iterable[float | None]) -> float | None:
    """Nulls are passed over, and NaN is the greatest of all."""
    there = (one for one in values if one is not None)
    ordered = sorted(there, key=lambda one: (math.isnan(one), one))
    return (ordered[0] if how == "min" else ordered[-1]) if ordered else None
