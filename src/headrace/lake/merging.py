"""Merged views of lambda pipelines: the batch layer's rows, and the speed layer's behind them.

The batch table's newest lineage says which version of the input it covers. Rows of the speed
table say by `_commit_version` which commit of the input they came with. So a record is counted
by one of the two: by the batch table up to the covered version, by the speed table after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.lake.errors import LakeError, UnusableView
from headrace.lake.reading import quoted, run_sql
from headrace.lake.tables import Table
from headrace.lake.upserts import MERGES

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake, MergedViewEntry

COMMIT_VERSION = "_commit_version"
"""The column that says which commit a row came with; in the speed layer, which of the input's."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A moment of both layers that fit together."""

    batch: Table
    batch_version: int
    covered_version: int
    """The last commit of the input that the batch layer has; -1 before its first run."""
    speed: Table
    speed_version: int


def pair(lake: "Lake", view: "MergedViewEntry") -> Pair:
    """Which versions of both layers to read now.

    The speed layer first: it forgets what the batch layer has covered, and only afterwards. Read
    the other way round, what it forgot in between would be in neither.
    """
    catalog = lake.catalog()
    speed = lake.table_of(catalog, view.speed)
    batch = lake.table_of(catalog, view.batch)
    speed_version = speed.version
    batch_version = batch.version
    return Pair(batch, batch_version, covered_version(batch, batch_version), speed, speed_version)


def covered_version(batch: Table, version: int | None = None) -> int:
    """Up to which version of its input a batch table has counted; -1 before its first run."""
    lineage = batch.lineage_at(batch.version if version is None else version)
    if lineage is None or not lineage.inputs:
        return -1
    if len(lineage.inputs) > 1:
        raise LakeError(
            f"{batch.name} was computed from several tables ({', '.join(lineage.inputs)}); a"
            " merged view is an aggregate of one"
        )
    return next(iter(lineage.inputs.values()))[1]


def input_of(batch: Table) -> str | None:
    """The table that a batch table is computed from, once it was."""
    lineage = batch.lineage()
    return next(iter(lineage.inputs), None) if lineage is not None else None


def layers_of(view: "MergedViewEntry") -> tuple[str, str]:
    """The view's tables in the order in which their versions must be looked up; see `pair`."""
    return view.speed, view.batch


def check_columns(view: "MergedViewEntry", batch: Sequence[str], speed: Sequence[str]) -> None:
    """Refuse a view whose tables lack its columns, or that merges in a way nobody knows."""
    unknown = sorted(set(view.merge.values()) - set(MERGES))
    if unknown:
        raise UnusableView(f"{view.name} merges by {unknown[0]}; known are {', '.join(MERGES)}")
    needed = (*view.keys, *view.merge)
    for table, columns, wanted in (
        (view.batch, batch, needed),
        (view.speed, speed, (*needed, COMMIT_VERSION)),
    ):
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise UnusableView(f"{view.name} needs the column {missing[0]}, which {table} lacks")


def merged_select(
    view: "MergedViewEntry",
    covered: int,
    batch: str,
    speed: str,
    types: Mapping[str, str] | None = None,
) -> str:
    """SQL that gives the view's rows, over relations with the content of its layers.

    DuckDB widens sums; with `types`, those of the columns, they are cast back.
    """
    keys = [quoted(key) for key in view.keys]
    columns = ", ".join([*keys, *map(quoted, view.merge)])
    merged = [f"{how}({quoted(name)})" for name, how in view.merge.items()]
    if types is not None:
        merged = [
            f"CAST({one} AS {types[name]})" for one, name in zip(merged, view.merge, strict=True)
        ]
    named = [f"{one} AS {quoted(name)}" for one, name in zip(merged, view.merge, strict=True)]
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    return (
        f"SELECT {', '.join([*keys, *named])} FROM (SELECT {columns} FROM {batch} UNION ALL"
        f" SELECT {columns} FROM {speed} WHERE {quoted(COMMIT_VERSION)} > {covered}){grouping}"
    )


def merged_rows(lake: "Lake", view: "MergedViewEntry") -> pa.Table:
    """The view's rows at this moment, in the types of the batch table."""
    from headrace.lake.schemas import conform

    now = pair(lake, view)
    batch = now.batch.dataset(now.batch_version)
    speed = now.speed.dataset(now.speed_version)
    check_columns(view, batch.schema.names, speed.schema.names)
    select = merged_select(view, now.covered_version, "batch", "speed")
    rows: Any = run_sql(select, {"batch": batch, "speed": speed})
    schema = pa.schema([batch.schema.field(name) for name in (*view.keys, *view.merge)])
    return conform(rows, schema)
