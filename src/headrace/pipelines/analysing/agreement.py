"""The columns of a table that several flows write to: types that hold the values of every flow.

The rule is the lake's, by which tables are widened: an integer may become a longer one, a number a
decimal with room for it. If neither of two types holds the other's values, they are rejected: a
third type, such as double for a decimal, would change numbers silently.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import pyarrow as pa

from headrace.lake.errors import IncompatibleSchema
from headrace.lake.schemas import doubled, holding_both
from headrace.pipelines.analysing.raw_days import DAY, table_of_day
from headrace.pipelines.model import Location, Query
from headrace.pipelines.problems import PipelineError, Problem

Column = tuple[str, str]
"""A name, and the origin of the column, if known."""


@dataclass(frozen=True, slots=True)
class Part:
    """The columns that one flow writes, or that are declared with the table."""

    name: str
    location: Location
    columns: pa.Schema


def agreed(what: str, parts: Sequence[Part]) -> pa.Schema:
    """Return the columns that hold all parts; the PipelineError has the lines of all conflicts."""
    wrong = [found for pair in combinations(parts, 2) if (found := _complaint(what, *pair))]
    if wrong:
        raise PipelineError(*wrong)
    return reduce(holding_both, (part.columns for part in parts))


def as_declared(columns: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """Return a flow's columns in the declared types, where those are wider.

    A declaration of `n DOUBLE` allows a whole number to become a double.
    """
    return pa.schema([_as_declared(field, declared) for field in columns])


def _as_declared(field: pa.Field, declared: pa.Schema) -> pa.Field:
    if field.name not in declared.names:
        return field
    wanted = declared.field(field.name)
    both = [pa.schema([field]), pa.schema([wanted])]
    try:
        wider = pa.unify_schemas(both, promote_options="permissive").field(0)
    except pa.ArrowException:
        return field  # `agreed` reports the conflict.
    return field.with_type(wanted.type) if wider.type == wanted.type else field


def _complaint(what: str, before: Part, part: Part) -> Problem | None:
    try:
        holding_both(before.columns, part.columns)
    except IncompatibleSchema as error:
        text = (
            f"{what}: {part.name} does not fit together with {before.name}, at {before.location}:"
            f" {error}. Cast it in one of them"
        )
        return Problem(text, part.location)
    return None


def doubled_column_complaints(table: str, columns: Iterable[Column], query: Query) -> Iterator[str]:
    """Yield the problems with columns that a query writes twice, each with advice."""
    known = list(columns)
    for column in doubled(name for name, _ in known):
        same = (origin for name, origin in known if name.lower() == column.lower())
        raw = next(filter(None, map(table_of_day, same)), None)
        yield f"{table} has the column {column} twice" + _rename_advice(raw, query)


def _rename_advice(raw: str | None, query: Query) -> str:
    if raw is None:
        return "; names that differ in small and capital letters only are the same, so rename one"
    without, whole = (
        (f"SELECT * EXCEPT ({DAY}), ...", "PARTITIONED BY ()")
        if isinstance(query, str)
        else (f'.drop("{DAY}") before your own', "partition_cols=[]")
    )
    return (
        f": {raw} adds one, as it is partitioned by topic and day. Write {without}, or"
        f" {whole} at {raw}"
    )
