"""What flows bring beyond their queries: the bytes of their records for quarantine, and their day.

A query stays the user's as far as complaints point to its lines, and what is told of it by its text
is told before anything is added.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.pipelines.analysing.original_bytes import speaks_of, wants_bytes, with_payload
from headrace.pipelines.analysing.origins import noted, origin
from headrace.pipelines.analysing.raw_days import DAY, add_day, with_day
from headrace.pipelines.model import ERROR, PAYLOAD, Flow, Pipeline, Query, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Evaluate = Callable[[Query], "DataFrame"]


@dataclass(frozen=True, slots=True)
class FlowAsRun:
    """A flow with all that it brings, and the frame that Spark makes of its query."""

    flow: Flow
    frame: "DataFrame"


def keeping_bytes(
    made: FlowAsRun, source: Source, pipeline: Pipeline, evaluate: Evaluate, *, sets_aside: bool
) -> FlowAsRun:
    """The flow with the bytes of a source's records, where quarantine may want them.

    `sets_aside` says that what cannot be read is kept away from the query.
    """
    query, columns = made.flow.query, made.frame.columns
    is_asked_for = wants_bytes(made.flow, pipeline)
    keeps_errors = ERROR in columns and not sets_aside
    if speaks_of(query, PAYLOAD) or not (is_asked_for or keeps_errors):
        return made
    if PAYLOAD not in columns and (longer := with_payload(query, source)) is not None:
        made = _with_columns(made, longer, [*columns, PAYLOAD], evaluate)
    has_bytes = PAYLOAD in made.frame.columns
    return replace(made, flow=replace(made.flow, keeps_payloads=is_asked_for and has_bytes))


def bringing_day(made: FlowAsRun, table: str) -> FlowAsRun:
    """The flow with the day that its table has by itself, known as such wherever it goes."""
    frame = add_day(made.frame).withMetadata(DAY, noted(origin(table, DAY)))
    return FlowAsRun(replace(made.flow, query=with_day(made.flow.query)), frame)


def _with_columns(
    made: FlowAsRun, query: Query, columns: list[str], evaluate: Evaluate
) -> FlowAsRun:
    """The flow by a query of our own making, if Spark makes these columns of it."""
    from pyspark.errors import PySparkException

    try:
        frame = evaluate(query)
        is_made = frame.columns == columns  # A session over Connect looks only now.
    except PySparkException:
        return made  # An aggregate, for one: its rows are of several records.
    return FlowAsRun(replace(made.flow, query=query), frame) if is_made else made
