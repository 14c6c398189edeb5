"""Which columns a table has that several flows write to: those that hold all that each brings.

The rule is the lake's, by which tables are widened: an integer may become a longer one, a number a
decimal with room for it. Where neither of two types holds the other's values, no third is chosen,
as that would change numbers that nobody looks at: a decimal with a double is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import pyarrow as pa

from headrace.lake.errors import IncompatibleSchema
from headrace.lake.schemas import holding_both
from headrace.pipelines.model import Place
from headrace.pipelines.problems import PipelineError, Problem


@dataclass(frozen=True, slots=True)
class Part:
    """The columns that one flow brings, or that are declared with the table."""

    name: str
    place: Place
    columns: pa.Schema


def agreed(what: str, parts: Sequence[Part]) -> pa.Schema:
    """The columns that hold all parts; PipelineError at the line of one that does not fit."""
    wrong = [found for pair in combinations(parts, 2) if (found := _complaint(what, *pair))]
    if wrong:
        raise PipelineError(*wrong)
    return reduce(holding_both, (part.columns for part in parts))


def as_declared(columns: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """What a flow brings, in the types that are declared with the table, where those are wider.

    Who writes `n DOUBLE` has chosen that a whole number becomes one.
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
        return field  # It is said what does not fit when they are put together.
    return field.with_type(wanted.type) if wider.type == wanted.type else field


def _complaint(what: str, before: Part, part: Part) -> Problem | None:
    try:
        holding_both(before.columns, part.columns)
    except IncompatibleSchema as error:
        text = (
            f"{what}: {part.name} does not fit together with {before.name}, at {before.place}:"
            f" {error}. Cast it in one of them"
        )
        return Problem(text, part.place)
    return None
