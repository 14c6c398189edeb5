"""Keyed lookups: `?id=7&day=2026-03-01` as a condition with parameters.

Values come as text and are cast to the column's type by DuckDB, so a date is written as SQL
writes it. A name that comes several times asks for rows with any of the values.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from headrace.lake.reading import quoted
from headrace.serving.errors import ColumnNotFound

RESERVED = ("limit", "format")
"""Parameters that are not columns; a column of such a name is asked for by SQL."""
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_SCALE = re.compile(r"DECIMAL\(\d+,(\d+)\)")
_NUMBER = re.compile(r"\s*[+-]?[\d_]*\.?[\d_]*(?:[eE][+-]?[\d_]+)?\s*")
"""All that Python takes for a number, and a little more."""


def asked_columns(table: str, types: Mapping[str, str], written: Sequence[str]) -> list[str]:
    """The table's own names of the columns that a lookup names."""
    spelled = {name.lower(): name for name in types}
    for name in written:
        if name.lower() not in spelled:
            raise ColumnNotFound(name, table, types)
    return [spelled[name.lower()] for name in written]


def lookup(
    path: str, types: Mapping[str, str], columns: Sequence[str], values: Sequence[int]
) -> str:
    """The SELECT from what is at a path, for so many values of each column."""
    clauses = [
        _condition(column, types[column], count)
        for column, count in zip(columns, values, strict=True)
    ]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return f"SELECT * FROM {path}{where}"


def lookups_at_once(path: str, types: Mapping[str, str], column: str, values: int) -> str:
    """The SELECT for so many lookups by one column; behind its columns a row says whose it is."""
    casts = [f"CAST(${number} AS {types[column]})" for number in range(1, values + 1)]
    whose = ", ".join(f"{quoted(column)} = {cast}" for cast in casts)
    return f"SELECT *, {whose} FROM {path} WHERE {quoted(column)} IN ({', '.join(casts)})"


def may_be_rounded(value: str) -> bool:
    """Whether it looks as if it had a fraction; most values do not, and cost no more than this.

    Texts such as UUIDs have these letters too, but do not look like a number.
    """
    has_fraction = "." in value or "e" in value or "E" in value
    return has_fraction and _NUMBER.fullmatch(value) is not None


def is_rounded(value: str, type: str) -> bool:
    """Whether the column cannot hold this number: a cast would ask for 2 in the place of 1.5."""
    scale = _SCALE.fullmatch(type)
    if scale is None and type not in _WHOLE:
        return False
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        return False
    _, digits, exponent = number.as_tuple()
    excess = -exponent - (int(scale[1]) if scale else 0) if isinstance(exponent, int) else 0
    return excess > 0 and any(digits[-excess:])


def _condition(column: str, type: str, values: int) -> str:
    cast = f"CAST(? AS {type})"
    if values == 1:
        return f"{quoted(column)} = {cast}"
    return f"{quoted(column)} IN ({', '.join([cast] * values)})"
