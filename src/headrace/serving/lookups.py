"""Lookups by column values: `?id=7&day=2026-03-01` as a condition with parameters.

Values are texts that DuckDB casts to the column's type, so a date has its SQL form. A repeated
name selects rows with any of its values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from headrace.lake.reading import quoted
from headrace.serving.errors import ColumnNotFound

RESERVED = ("limit", "format")
"""Parameters that are not columns; use SQL for columns of these names."""
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_SCALE = re.compile(r"DECIMAL\(\d+,(\d+)\)")
_NUMBER = re.compile(r"\s*[+-]?[\d_]*\.?[\d_]*(?:[eE][+-]?[\d_]+)?\s*")
"""A superset of Python's number syntax."""


Shape = tuple[str, tuple[tuple[str, int], ...]]
"""A table, and the number of values by column."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Rows of one table by values of its columns."""

    table: str
    conditions: Mapping[str, Sequence[str]]
    rows_max: int

    @property
    def shape(self) -> Shape:
        """All but the values: lookups of one shape have the same statement."""
        counts = tuple((column, len(values)) for column, values in self.conditions.items())
        return self.table, counts

    @property
    def parameters(self) -> list[str]:
        return [value for values in self.conditions.values() for value in values]


def lookup_columns(table: str, types: Mapping[str, str], written: Sequence[str]) -> list[str]:
    """Return the columns of a lookup in the table's own spelling."""
    spelled = {name.lower(): name for name in types}
    for name in written:
        if name.lower() not in spelled:
            raise ColumnNotFound(name, table, types)
    return [spelled[name.lower()] for name in written]


def lookup_sql(
    path: str, types: Mapping[str, str], columns: Sequence[str], values: Sequence[int]
) -> str:
    """Return the SELECT for a number of values of each column."""
    clauses = [
        _condition(column, types[column], count)
        for column, count in zip(columns, values, strict=True)
    ]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return f"SELECT * FROM {path}{where}"


def may_be_rounded(value: str) -> bool:
    """Return whether a value looks like a number with a fraction; cheap for most values.

    Texts such as UUIDs contain the same letters, but do not look like numbers.
    """
    has_fraction = "." in value or "e" in value or "E" in value
    return has_fraction and _NUMBER.fullmatch(value) is not None


def is_rounded(value: str, type: str) -> bool:
    """Return whether a cast to the column's type would round this number, such as 1.5 to 2."""
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
