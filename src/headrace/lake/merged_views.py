"""Merged views of lambda pipelines: the batch layer's rows and the later rows of the speed layer.

The batch table's newest lineage has the version of the input that it covers. `_commit_version` in
the rows of the speed table is the commit of the input that they came with. So each record is
counted once: by the batch table up to the covered version, by the speed table after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from headrace.lake.errors import LakeError, UnusableView
from headrace.lake.merge_functions import MERGES
from headrace.lake.reading import quoted, run_sql
from headrace.lake.tables import Table

COMMIT_VERSION = "_commit_version"
"""The column with a row's commit; in the speed layer, the commit of the input."""


class MergedViewEntry(msgspec.Struct, frozen=True):
    """A view of a lambda pipeline over its batch layer and its speed layer."""

    name: str
    keys: tuple[str, ...]
    merge: Mapping[str, str]
    """The aggregate of each column that is not a key: sum, min or max."""
    batch: str
    speed: str
    pipeline: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Versions of both layers that fit together."""

    batch: Table
    batch_version: int
    covered_version: int
    """The last commit of the input that the batch layer has; -1 before its first run."""
    speed: Table
    speed_version: int

    @property
    def versions(self) -> dict[str, int]:
        """The versions of both layers, as a lineage records them."""
        return {self.batch.name: self.batch_version, self.speed.name: self.speed_version}

    def at(self, batch_version: int, speed_version: int) -> "Pair":
        """Return the same tables at versions of an earlier lookup."""
        covered = covered_version(self.batch, batch_version)
        return Pair(self.batch, batch_version, covered, self.speed, speed_version)


def reached_version(speed: Table, source: str, version: int | None = None) -> int:
    """Return the input version that a speed table has reached; 0 before its first part.

    Batch runs are computed from exactly this version. Parts that are committed later reach beyond
    it, so a batch run covers each part whole or not at all.
    """
    lineage = speed.history.lineage_at(speed.version if version is None else version)
    return 0 if lineage is None else lineage.inputs.get(source, (0, 0))[1]


def forget_covered(speed: Table, version: int) -> None:
    """Remove the parts up to a version of the input that a committed batch run covers."""
    is_covered = f"{COMMIT_VERSION} <= {version}"
    if speed.rows(columns=[COMMIT_VERSION], where=is_covered, limit=1).num_rows:
        speed.delete(is_covered)


def covered_version(batch: Table, version: int | None = None) -> int:
    """Return the input version that a batch table covers; -1 before its first run."""
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
    """Return the table that a batch table was computed from, if it was computed yet."""
    lineage = batch.history.lineage()
    return next(iter(lineage.inputs), None) if lineage is not None else None


def layers_of(view: MergedViewEntry) -> tuple[str, str]:
    """Return the view's tables in the order of their lookup; see `Lake.layers`."""
    return view.speed, view.batch


def check_columns(view: MergedViewEntry, batch: Sequence[str], speed: Sequence[str]) -> None:
    """Reject a view with an unknown aggregate, or whose tables lack its columns."""
    unknown = sorted(set(view.merge.values()) - set(MERGES))
    if unknown:
        raise UnusableView(
            f"{view.name} merges by the unknown aggregate {unknown[0]}; use {', '.join(MERGES)}"
        )
    needed = (*view.keys, *view.merge)
    for table, columns, wanted in (
        (view.batch, batch, needed),
        (view.speed, speed, (*needed, COMMIT_VERSION)),
    ):
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise UnusableView(f"{view.name} needs the column {missing[0]}, which {table} lacks")


def merged_select(
    view: MergedViewEntry,
    covered: int,
    batch: str,
    speed: str,
    types: Mapping[str, str] | None = None,
) -> str:
    """Return SQL for the view's rows, over relations with the content of its layers.

    DuckDB widens sums; with the columns' `types` they are cast back.
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


def merged_rows(view: MergedViewEntry, now: Pair) -> pa.Table:
    """Return the view's rows at these versions, in the types of the batch table."""
    from headrace.lake.schemas import conform

    batch = now.batch.dataset(now.batch_version)
    speed = now.speed.dataset(now.speed_version)
    check_columns(view, batch.schema.names, speed.schema.names)
    select = merged_select(view, now.covered_version, "batch", "speed")
    rows: Any = run_sql(select, {"batch": batch, "speed": speed})
    schema = pa.schema([batch.schema.field(name) for name in (*view.keys, *view.merge)])
    return conform(rows, schema)
