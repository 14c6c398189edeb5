"""Rows into a table by key: replace, merge or delete the row that is there, insert the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.errors import LakeError
from headrace.lake.reading import quoted

MERGES = ("sum", "min", "max")


def one_row_per_key(
    rows: Any, keys: Sequence[str], merge: Mapping[str, str] | None, delete: str | None
) -> Any:
    """Each key once: parts of one aggregate are merged, anything else twice is a mistake.

    Which of two rows with one key is the right one cannot be known here.
    """
    flat = rows.select(list(keys))
    while any(pa.types.is_struct(field.type) for field in flat.schema):
        flat = flat.flatten()  # Arrow groups by plain columns only.
    counts = flat.group_by(flat.column_names).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1))
    if not twice.num_rows:
        return rows
    if merge is None or delete is not None:
        first = {name: twice[name][0].as_py() for name in flat.column_names}
        raise LakeError(
            f"the key {first} is there {twice['count_all'][0].as_py()} times in one batch, and"
            f" {twice.num_rows - 1} further keys more than once; keep one row for each key"
        )
    merged = rows.group_by(list(keys)).aggregate([(name, how) for name, how in merge.items()])
    columns = [
        merged[name] if name in keys else merged[f"{name}_{merge[name]}"].cast(field.type)
        for name, field in ((field.name, field) for field in rows.schema)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def check(
    schema: pa.Schema, keys: Sequence[str], merge: Mapping[str, str] | None, delete: str | None
) -> None:
    """Refuse keys and merged columns that are not the table's."""
    for name in (*keys, *(merge or ())):
        if name not in schema.names:
            raise LakeError(f"the table has no column {name}; it has {', '.join(schema.names)}")
    if not keys:
        raise LakeError("rows can only be put in the place of others by a key; name its columns")
    if delete is not None and delete in schema.names:
        raise LakeError(
            f"the column {delete}, which says what to delete, is one of the table; use another name"
        )
    if merge is None:
        return
    unknown = {how for how in merge.values() if how not in MERGES}
    if unknown:
        raise LakeError(f"{', '.join(sorted(unknown))} is no way to merge; there are sum, min, max")
    unmerged = [name for name in schema.names if name not in keys and name not in merge]
    if unmerged:
        raise LakeError(
            f"nothing says how to merge the column {', '.join(unmerged)}; it is neither a key nor"
            " given sum, min or max"
        )


def condition(keys: Sequence[str]) -> str:
    """When a row of the table and an arriving one are the same; nulls are the same key too."""
    return " AND ".join(f"(t.{quoted(key)} IS NOT DISTINCT FROM s.{quoted(key)})" for key in keys)


def updates(
    schema: pa.Schema, keys: Sequence[str], merge: Mapping[str, str] | None
) -> dict[str, str]:
    """What each column of a matched row becomes."""
    return {
        quoted(name): _merged(name, merge[name]) if merge else f"s.{quoted(name)}"
        for name in schema.names
        if name not in keys
    }


def _merged(name: str, how: str) -> str:
    """Two parts of an aggregate as one; a part that is null adds nothing."""
    old, new = f"t.{quoted(name)}", f"s.{quoted(name)}"
    if how == "sum":
        return f"coalesce({old} + {new}, {old}, {new})"
    order = "<=" if how == "min" else ">="
    return (
        f"CASE WHEN {old} IS NULL THEN {new} WHEN {new} IS NULL OR {old} {order} {new}"
        f" THEN {old} ELSE {new} END"
    )
