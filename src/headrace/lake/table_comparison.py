"""Comparison of the rows of two tables, in any order.

Each row is reduced to a hash. Equal rows have equal sums of hashes, so equal tables are recognised
after one pass over each, in a few bytes of memory. Only for tables that differ are the hashes
counted one by one, by DuckDB, which spills to disk.

Changed columns are found by an identity of rows: the table's key, or the record that a row came
from. Without an identity, a changed row counts as one removed and one added.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.lake.errors import LakeError
from headrace.lake.reading import connected, quoted
from headrace.lake.tables import Table

MEMORY_MAX = "256MB"
"""Memory for counting hashes; the rest is spilled to disk."""
ROWS_SHOWN_MAX = 5
RECORD = ("topic", "partition", "offset")
"""The columns that identify the record of a row, in tables that keep them."""
_COUNT_BY_HASH = """
    CREATE TEMP TABLE differing AS SELECT hashed, sum(one) AS times FROM (
        SELECT hash({columns}) AS hashed, 1 AS one FROM new
        UNION ALL
        SELECT hash({columns}) AS hashed, -1 AS one FROM old
    ) GROUP BY hashed HAVING sum(one) <> 0
"""
_SIDES = (("-", "old", "times < 0"), ("+", "new", "times > 0"))


@dataclass(frozen=True, slots=True)
class Contents:
    """The differences between two tables; duplicate rows count separately."""

    rows_before: int
    rows_after: int
    changed: int = 0
    """Rows with the same key or record and other values."""
    only_before: int = 0
    only_after: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    """The number of changed rows by the column that differs."""
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_retyped: tuple[str, ...] = ()
    """Columns whose type differs; their values are not compared."""
    examples: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Some differing rows, with `-` for the old table and `+` for the new one."""

    @property
    def is_equal(self) -> bool:
        is_same_shape = not (self.columns_added or self.columns_removed or self.columns_retyped)
        return is_same_shape and not (self.changed or self.only_before or self.only_after)


def compare(
    old: Table,
    new: Table,
    *,
    keys: Sequence[str] = (),
    ignored: Sequence[str] = (),
    rows_shown: int = ROWS_SHOWN_MAX,
) -> Contents:
    """Compare the current rows of two tables by the columns that both have with one type.

    `keys` identify rows; by default the record that a row came from does. `ignored` are columns
    that always differ between two builds of a table, such as the time of a rejection.
    """
    return compare_rows(
        old.dataset(), new.dataset(), keys=keys, ignored=ignored, rows_shown=rows_shown
    )


def compare_rows(
    old_rows: Any,
    new_rows: Any,
    *,
    keys: Sequence[str] = (),
    ignored: Sequence[str] = (),
    rows_shown: int = ROWS_SHOWN_MAX,
) -> Contents:
    """Compare Arrow datasets or tables as `compare` does."""
    before, after = old_rows.schema, new_rows.schema
    shared = [
        column.name
        for column in after
        if column.name in before.names
        and before.field(column.name).type == column.type
        and column.name not in ignored
    ]
    both = set(before.names) & set(after.names)
    with (
        tempfile.TemporaryDirectory(prefix="headrace-compare-") as spilled,
        connected({"old": old_rows, "new": new_rows}) as connection,
    ):
        connection.execute(f"SET memory_limit = '{MEMORY_MAX}'")
        connection.execute(f"SET temp_directory = '{spilled}'")
        found = _compared(connection, shared, keys, rows_shown)
    return Contents(
        **found,
        columns_added=tuple(sorted(set(after.names) - both)),
        columns_removed=tuple(sorted(set(before.names) - both)),
        columns_retyped=tuple(
            sorted(one for one in both if before.field(one).type != after.field(one).type)
        ),
    )


def _compared(
    connection: Any, columns: Sequence[str], keys: Sequence[str], rows_shown: int
) -> dict[str, Any]:
    old, new = _digest(connection, "old", columns), _digest(connection, "new", columns)
    found: dict[str, Any] = {"rows_before": old[0], "rows_after": new[0]}
    if old == new:
        return found
    if not columns:
        found["only_before"] = max(0, old[0] - new[0])
        found["only_after"] = max(0, new[0] - old[0])
        return found
    _fetched(connection, _COUNT_BY_HASH.format(columns=_list(columns)))
    only_before, only_after = _counted(connection)
    changed, by_column = _changed(connection, columns, keys)
    return {
        **found,
        "changed": changed,
        "only_before": only_before - changed,
        "only_after": only_after - changed,
        "columns": by_column,
        "examples": _examples(connection, columns, rows_shown),
    }


def _digest(connection: Any, relation: str, columns: Sequence[str]) -> tuple[int, int | None]:
    """Return the number of rows and the sum of their hashes."""
    summed = f"sum(hash({_list(columns)})::HUGEINT)" if columns else "NULL"
    ((rows, whole),) = _fetched(connection, f"SELECT count(*), {summed} FROM {relation}")
    return rows, whole


def _counted(connection: Any) -> tuple[int, int]:
    """Count the rows that only the old and only the new table has, changed ones included."""
    ((removed, added),) = _fetched(
        connection,
        "SELECT sum(-times) FILTER (times < 0), sum(times) FILTER (times > 0) FROM differing",
    )
    return int(removed or 0), int(added or 0)


def _changed(
    connection: Any, columns: Sequence[str], keys: Sequence[str]
) -> tuple[int, dict[str, int]]:
    """Count the changed rows, in total and by column.

    Differing rows that share an identity with others of their table are not counted as changed.
    """
    is_keyed = bool(keys) and set(keys) <= set(columns)
    identity = tuple(keys) if is_keyed else RECORD
    if not set(identity) <= set(columns):
        return 0, {}
    # A key may be null, as that of a group can; an unknown record identifies nothing.
    is_known = "" if is_keyed else "".join(f" AND {quoted(one)} IS NOT NULL" for one in identity)
    hashes = ", ".join(
        f"any_value(hash({quoted(name)})) AS h{number}" for number, name in enumerate(columns)
    )
    before, after = (
        f"(SELECT hash({_list(identity)}) AS identity, {hashes} FROM {relation}"
        f" WHERE hash({_list(columns)}) IN (SELECT hashed FROM differing WHERE {side}){is_known}"
        " GROUP BY identity HAVING count(*) = 1)"
        for _, relation, side in _SIDES
    )
    differs = ", ".join(
        f"count(*) FILTER (before.h{number} <> after.h{number})" for number in range(len(columns))
    )
    query = (
        f"SELECT count(*), {differs} FROM {before} AS before JOIN {after} AS after USING (identity)"
    )
    ((changed, *counts),) = _fetched(connection, query)
    by_column = {name: rows for name, rows in zip(columns, counts, strict=True) if rows}
    return changed, by_column


def _examples(
    connection: Any, columns: Sequence[str], limit: int
) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return some rows of each side, found by their hashes."""
    names = _list(columns)
    found: list[tuple[str, Mapping[str, Any]]] = []
    for sign, relation, side in _SIDES:
        chosen = _fetched(connection, f"SELECT hashed FROM differing WHERE {side} LIMIT {limit}")
        if chosen:
            hashes = ", ".join(str(one[0]) for one in chosen)
            rows = _fetched(
                connection,
                f"SELECT {names} FROM {relation} WHERE hash({names}) IN ({hashes}) LIMIT {limit}",
            )
            found += [(sign, dict(zip(columns, row, strict=True))) for row in rows]
    return tuple(found)


def _list(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def _fetched(connection: Any, query: str) -> list[tuple[Any, ...]]:
    import duckdb

    try:
        rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    except duckdb.Error as error:
        raise LakeError(f"the tables could not be compared: {error}") from error
    return rows
