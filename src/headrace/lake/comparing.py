"""Whether two tables hold the same rows, in whatever order, and where they do not.

Each row is reduced to a hash. The sums of these hashes are the same for the same rows, so two
tables that are equal are known to be after one pass over each, in a few bytes of memory. Only of
tables that differ the hashes are counted one by one, by DuckDB, which puts on disk what does not
fit into its memory.

A row has a counterpart where something else than its values says which row it is: the table's key,
or the record that it came from. Without that no column can be said to have changed.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.lake.errors import LakeError
from headrace.lake.reading import connected, quoted
from headrace.lake.tables import Table

MEMORY_MAX = "256MB"
"""What counting hashes may take; further ones wait on disk."""
ROWS_SHOWN_MAX = 5
RECORD = ("topic", "partition", "offset")
"""The columns that name the record which a row came from, in tables that keep them."""
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
    """What one table has that the other has not; rows are counted as often as they are there."""

    rows_before: int
    rows_after: int
    changed: int = 0
    """Rows that both have, by their key or record, with other values."""
    only_before: int = 0
    only_after: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    """In how many of the changed rows each column differs."""
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_retyped: tuple[str, ...] = ()
    """Columns of another type, whose values are not compared."""
    examples: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Some of the rows, `-` for those of the old table and `+` for those of the new one."""

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
    """Compare what two tables hold now, by the columns that both have in one type.

    `keys` say which rows are the same one; without them the record does that a row came from.
    `ignored` are columns that two honest buildings of one table never share, such as the moment at
    which a row was refused.
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
    """The same of rows that are not those of a table: datasets of Arrow, or its tables."""
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
    """How many rows there are, and the sum of their hashes."""
    summed = f"sum(hash({_list(columns)})::HUGEINT)" if columns else "NULL"
    ((rows, whole),) = _fetched(connection, f"SELECT count(*), {summed} FROM {relation}")
    return rows, whole


def _counted(connection: Any) -> tuple[int, int]:
    """How many rows only the old and only the new table has, changed ones among them."""
    ((removed, added),) = _fetched(
        connection,
        "SELECT sum(-times) FILTER (times < 0), sum(times) FILTER (times > 0) FROM differing",
    )
    return int(removed or 0), int(added or 0)


def _changed(
    connection: Any, columns: Sequence[str], keys: Sequence[str]
) -> tuple[int, dict[str, int]]:
    """How many rows have a counterpart with other values, and in which columns.

    Where several rows that differ share an identity, none of them is taken for another's
    counterpart.
    """
    is_keyed = bool(keys) and set(keys) <= set(columns)
    identity = tuple(keys) if is_keyed else RECORD
    if not set(identity) <= set(columns):
        return 0, {}
    # A key may be null, as a group's can; a record that is not known is no identity.
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
    """Some rows of each side, found again by their hashes."""
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
