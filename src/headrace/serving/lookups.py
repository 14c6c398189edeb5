"""Keyed lookups: `?id=7&day=2026-03-01` as a condition with parameters.

Values come as text and are cast to the column's type by DuckDB, so a date is written as SQL
writes it. A name that comes several times asks for rows with any of the values.
"""

from collections.abc import Mapping, Sequence

from headrace.lake.reading import quoted, table_path
from headrace.serving.errors import ColumnNotFound

RESERVED = ("limit", "format")
"""Parameters that are not columns; a column of such a name is asked for by SQL."""


def lookup(
    table: str, types: Mapping[str, str], conditions: Mapping[str, Sequence[str]]
) -> tuple[str, list[str]]:
    """The SELECT and its parameters."""
    spelled = {name.lower(): name for name in types}
    clauses: list[str] = []
    parameters: list[str] = []
    for written, values in conditions.items():
        column = spelled.get(written.lower())
        if column is None:
            raise ColumnNotFound(written, table, types)
        casts = [f"CAST(? AS {types[column]})"] * len(values)
        clauses.append(
            f"{quoted(column)} = {casts[0]}"
            if len(casts) == 1
            else f"{quoted(column)} IN ({', '.join(casts)})"
        )
        parameters += values
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return f"SELECT * FROM {table_path(table)}{where}", parameters
