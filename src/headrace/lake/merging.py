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

    @property
    def versions(self) -> dict[str, int]:
        """What a lineage says of a view's content: both layers, as they were read."""
        return {self.batch.name: self.batch_version, self.speed.name: self.speed_version}

    def at(self, batch_version: int, speed_version: int) -> "Pair":
        """The same tables at versions that were looked up together before."""
        covered = covered_version(self.batch, batch_version)
        return Pair(self.batch, batch_version, covered, self.speed, speed_version)


def pair(
    lake: "Lake", view: "MergedViewEntry", generations: Mapping[str, int] | None = None
) -> Pair:
    """Which versions of both layers to read now, of generations other than the current if said.

    The speed layer first: it forgets what the batch layer has covered, and only afterwards. Read
    the other way round, what it forgot in between would be in neither.
    """
    catalog, chosen = lake.catalog(), generations or {}
    speed = lake.table_of(catalog, view.speed, chosen.get(view.speed))
    batch = lake.table_of(catalog, view.batch, chosen.get(view.batch))
    speed_version = speed.version
    batch_version = batch.version
    return Pair(batch, batch_version, covered_version(batch, batch_version), speed, speed_version)


def reached_version(speed: Table, source: str, version: int | None = None) -> int:
    """Up to which version of its input a speed layer's table has come; 0 before its first part.

    Batch runs are computed from just this version. A part that is still on its way then reaches
    beyond it, and so does every later one: no part is covered by halves.
    """
    lineage = speed.history.lineage_at(speed.version if version is None else version)
    return 0 if lineage is None else lineage.inputs.get(source, (0, 0))[1]


def forget_covered(speed: Table, version: int) -> None:
    """Remove the parts up to a version of the input, which a batch run that is committed has."""
    is_covered = f"{COMMIT_VERSION} <= {version}"
    if speed.rows(columns=[COMMIT_VERSION], where=is_covered, limit=1).num_rows:
        speed.delete(is_covered)


def covered_version(batch: Table, version: int | None = None) -> int:
    """Up to which version of its input a batch table has counted; -1 before its first run."""
    lineage = batch.history.lineage_at(batch.version if version is None else version)
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
    lineage = batch.history.lineage()
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


def merged_rows(view: "MergedViewEntry", now: Pair) -> pa.Table:
    """The view's rows at some moment, in the types of the batch table."""
    from headrace.lake.schemas import conform

    batch = now.batch.dataset(now.batch_version)
    speed = now.speed.dataset(now.speed_version)
    check_columns(view, batch.schema.names, speed.schema.names)
    select = merged_select(view, now.covered_version, "batch", "speed")
    rows: Any = run_sql(select, {"batch": batch, "speed": speed})
    schema = pa.schema([batch.schema.field(name) for name in (*view.keys, *view.merge)])
    return conform(rows, schema)
