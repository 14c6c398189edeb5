"""Merged views of lambda pipelines as views of DuckDB's over the tables that are served.

The seam is the lake's (`lake/merging.py`): of the speed layer only rows count that came after
what the batch layer covers. The speed layer forgets what was covered, so its version is looked up
before the batch's: any such pair is the exact answer for some moment. The covered version stands
in the view itself, which is replaced in the transaction that shows the batch table it belongs to.
"""

from collections.abc import Mapping, Sequence

from headrace.errors import HeadraceError
from headrace.lake.catalog import MergedViewEntry
from headrace.lake.merging import COMMIT_VERSION
from headrace.lake.reading import quoted
from headrace.lake.upserts import MERGES


class UnusableView(HeadraceError):
    """A merged view whose entry in the catalog does not fit its tables."""


def merged_select(view: MergedViewEntry, covered: int, types: Mapping[str, str]) -> str:
    """The view's rows, computed from both layers.

    `types` are the batch table's columns: sums are cast back, since DuckDB widens them.
    """
    keys = [quoted(key) for key in view.keys]
    columns = ", ".join([*keys, *map(quoted, view.merge)])
    merged = [
        f"CAST({how}({quoted(name)}) AS {types[name]}) AS {quoted(name)}"
        for name, how in view.merge.items()
    ]
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    return (
        f"SELECT {', '.join([*keys, *merged])} FROM ("
        f"SELECT {columns} FROM {table_path(view.batch)} UNION ALL"
        f" SELECT {columns} FROM {table_path(view.speed)}"
        f" WHERE {COMMIT_VERSION} > {covered}){grouping}"
    )


def check_columns(view: MergedViewEntry, batch: Sequence[str], speed: Sequence[str]) -> None:
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


def table_path(name: str) -> str:
    """`zone.table` as SQL takes it, whatever is in it."""
    zone, _, table = name.partition(".")
    return f"{quoted(zone)}.{quoted(table)}"


def members(view: MergedViewEntry) -> Sequence[str]:
    """The view's tables in the order in which their versions must be looked up."""
    return (view.speed, view.batch)
