"""Columns that a query brings twice under one name, so that no table can be made of them.

Spark lets them pass until somebody asks for one. A frequent case is a `day` that is computed beside
`*`: the table of raw behind it has one already, which its author has never written.
"""

from collections.abc import Iterable, Iterator

from headrace.lake.schemas import doubled
from headrace.pipelines.analysing.raw_days import DAY, table_of_day
from headrace.pipelines.model import Query

Column = tuple[str, str]
"""A name, and the origin of what it names, if that is known."""


def complaints(table: str, columns: Iterable[Column], query: Query) -> Iterator[str]:
    """What is wrong with the columns that a query brings to a table, and what to do about it."""
    known = list(columns)
    for column in doubled(name for name, _ in known):
        same = (origin for name, origin in known if name.lower() == column.lower())
        raw = next(filter(None, map(table_of_day, same)), None)
        yield f"{table} has the column {column} twice" + _advice(raw, query)


def _advice(raw: str | None, query: Query) -> str:
    if raw is None:
        return "; names that differ in small and capital letters only are the same, so rename one"
    without, whole = (
        (f"SELECT * EXCEPT ({DAY}), ...", "PARTITIONED BY ()")
        if isinstance(query, str)
        else (f'.drop("{DAY}") before your own', "partition_cols=[]")
    )
    return (
        f": {raw} has one by itself, as it is partitioned by topic and day. Write {without}, or"
        f" {whole} at {raw}"
    )
