"""Columns added to flows: the bytes of their records for quarantine, and their day.

Checks of the query's text and lines run before anything is added.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.pipelines.analysing.original_bytes import names_column, needs_bytes, with_payload
from headrace.pipelines.analysing.origins import noted, origin
from headrace.pipelines.analysing.raw_days import DAY, add_day, with_day
from headrace.pipelines.model import ERROR, KEPT_RECORD, PAYLOAD, Flow, Pipeline, Query, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Evaluate = Callable[[Query], "DataFrame"]


@dataclass(frozen=True, slots=True)
class FlowAsRun:
    """A flow with its additions, and the frame of its query."""

    flow: Flow
    frame: "DataFrame"


def keeping_bytes(
    made: FlowAsRun,
    source: Source,
    pipeline: Pipeline,
    evaluate: Evaluate,
    *,
    has_side_output: bool,
) -> FlowAsRun:
    """Add the bytes of a source's records to a flow if quarantine may need them.

    `has_side_output` is true if unreadable records bypass the query.
    """
    query, columns = made.flow.query, made.frame.columns
    is_asked_for = needs_bytes(made.flow, pipeline)
    keeps_errors = ERROR in columns and not has_side_output
    if names_column(query, PAYLOAD) or not (is_asked_for or keeps_errors):
        return made
    if PAYLOAD not in columns and (longer := with_payload(query, source)) is not None:
        made = _with_bytes(made, longer, evaluate)
    has_bytes = PAYLOAD in made.frame.columns
    return replace(made, flow=replace(made.flow, keeps_payloads=is_asked_for and has_bytes))


def adding_day(made: FlowAsRun, table: str) -> FlowAsRun:
    """Add the default day of a raw table to a flow, marked with its origin."""
    frame = add_day(made.frame).withMetadata(DAY, noted(origin(table, DAY)))
    return FlowAsRun(replace(made.flow, query=with_day(made.flow.query)), frame)


def _with_bytes(made: FlowAsRun, query: Query, evaluate: Evaluate) -> FlowAsRun:
    """Return the flow by the longer query, if Spark makes only these more columns of it."""
    from pyspark.errors import PySparkException

    try:
        frame = evaluate(query)
        # A session over Connect analyses the query only here.
        own = [name for name in frame.columns if name not in (PAYLOAD, KEPT_RECORD)]
    except PySparkException:
        return made  # For example an aggregate: its rows are made of several records.
    if own != made.frame.columns:
        return made
    return FlowAsRun(replace(made.flow, query=query), frame)
