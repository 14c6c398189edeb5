"""Whether two tables hold the same rows, in whatever order, and where they do not.

Each row is reduced to a hash. The sums of these hashes are the same for the same rows, so two
tables that are equal are known to be after one pass over each, in a few bytes of memory. Only of
tables that differ the hashes are counted one by one, by DuckDB, which puts on disk what does not
fit into its memory.
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
_COUNT_BY_HASH = """
    SELECT hashed, sum(one) AS times FROM (
        SELECT hash({columns}) AS hashed, 1 AS one FROM new
        UNION ALL
        SELECT hash({columns}) AS hashed, -1 AS one FROM old
    ) GROUP BY hashed HAVING sum(one) <> 0
"""


@dataclass(frozen=True, slots=True)
class Contents:
    """What one table has that the other has not.

    Rows are counted as often as they are there; a changed row is one on each side.
    """

    rows_before: int
    rows_after: int
    only_before: int = 0
    only_after: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    """The columns whose values differ, and in how many rows of the new table."""
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_retyped: tuple[str, ...] = ()
    """Columns of another type, whose values are not compared."""
    examples: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Some of the rows, `-` for those of the old table and `+` for those of the new one."""

    @property
    def is_equal(self) -> bool:
        is_same_shape = not (self.columns_added or self.columns_removed or self.columns_retyped)
        return is_same_shape and not self.only_before and not self.only_after


def compare(
    old: Table, new: Table, *, ignored: Sequence[str] = (), rows_shown: int = ROWS_SHOWN_MAX
) -> Contents:
    """Compare what two tables hold now, by the columns that both have in one type.

    `ignored` are columns that two honest buildings of one table never share, such as the moment at
    which a row was refused.
    """
    return compare_rows(old.dataset(), new.dataset(), ignored=ignored, rows_shown=rows_shown)


def compare_rows(
    old_rows: Any, new_rows: Any, *, ignored: Sequence[str] = (), rows_shown: int = ROWS_SHOWN_MAX
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
        found = _compared(connection, shared, rows_shown)
    return Contents(
        **found,
        columns_added=tuple(sorted(set(after.names) - both)),
        columns_removed=tuple(sorted(set(before.names) - both)),
        columns_retyped=tuple(
            sorted(one for one in both if before.field(one).type != after.field(one).type)
        ),
    )


def _compared(connection: Any, columns: Sequence[str], rows_shown: int) -> dict[str, Any]:
    old, new = _digests(connection, "old", columns), _digests(connection, "new", columns)
    found: dict[str, Any] = {"rows_before": old.rows, "rows_after": new.rows}
    if old == new:
        return found
    if not columns:
        found["only_before"] = max(0, old.rows - new.rows)
        found["only_after"] = max(0, new.rows - old.rows)
        return found
    found["only_before"], found["only_after"] = _counted(connection, columns)
    found["columns"] = {
        name: _counted(connection, [name])[1]
        for name in columns
        if old.columns[name] != new.columns[name]
    }
    found["examples"] = _examples(connection, columns, rows_shown)
    return found


@dataclass(frozen=True, slots=True)
class _Digests:
    """Sums of hashes: of whole rows, and of the values of each column."""

    rows: int
    whole: int | None
    columns: Mapping[str, int | None]


def _digests(connection: Any, relation: str, columns: Sequence[str]) -> _Digests:
    hashed = [_list(columns), *map(quoted, columns)] if columns else []
    sums = [f"sum(hash({one})::HUGEINT)" for one in hashed]
    query = f"SELECT {', '.join(['count(*)', *sums])} FROM {relation}"
    ((rows, *found),) = _fetched(connection, query)
    whole, *parts = found or [None]
    return _Digests(rows, whole, dict(zip(columns, parts, strict=True)))


def _counted(connection: Any, columns: Sequence[str]) -> tuple[int, int]:
    """How many rows only the old and only the new table has, by the hashes of these columns."""
    ((removed, added),) = _fetched(
        connection,
        "SELECT sum(-times) FILTER (times < 0), sum(times) FILTER (times > 0)"
        f" FROM ({_COUNT_BY_HASH.format(columns=_list(columns))})",
    )
    return int(removed or 0), int(added or 0)


def _examples(
    connection: Any, columns: Sequence[str], limit: int
) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Some rows of each side, found again by their hashes."""
    names = _list(columns)
    counted = _COUNT_BY_HASH.format(columns=names)
    found: list[tuple[str, Mapping[str, Any]]] = []
    for sign, relation, side in (("-", "old", "times < 0"), ("+", "new", "times > 0")):
        chosen = _fetched(connection, f"SELECT hashed FROM ({counted}) WHERE {side} LIMIT {limit}")
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
