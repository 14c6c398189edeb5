"""The default partitions of raw tables: topic and day.

They keep a query for one topic and day cheap. A table without declared partitions whose flows all
bring the topic and the time of their records gets the day as one more column. Columns with these
names from the payload or a computation do not count, since each of their values would become a
directory; see `origins` for the limits. The day is in UTC, independent of the session's time zone,
so that a row's partition does not depend on the writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from headrace.pipelines.analysing.origins import RECORD, Origins, origin, origins_of
from headrace.pipelines.analysing.stand_ins import parsed_schema
from headrace.pipelines.declaring.names import zone_of
from headrace.pipelines.model import RAW, Dataset, Query, StreamingTable
from headrace.pipelines.queries.resolving import then

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.lake.tables import Table

DAY = "day"
PARTITIONS = ("topic", DAY)
Types = Mapping[str, str]
"""Columns by name, with Spark's short names of their types."""
MADE_WHOLE = "it was made without; rebuild it with headrace pipelines replay FOLDER"

_NEEDED = {"topic": "string", "timestamp": "timestamp"}
_DAY_OF_TIMESTAMP = "date_from_unix_date(CAST(floor(unix_seconds(timestamp) / 86400) AS INT))"


def has_default_partitions(dataset: Dataset) -> TypeGuard[StreamingTable]:
    """Return whether a dataset is a raw table without declared partitions."""
    if not isinstance(dataset, StreamingTable) or zone_of(dataset.name) != RAW:
        return False
    return dataset.partition_by is None


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a flow."""

    types: Types
    origins: Origins = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Days:
    """The outcome for such a table: default partitions, unless there is an obstacle."""

    obstacle: str | None = None
    """Why it has none, with advice."""
    added_to: frozenset[str] = frozenset()
    """The flows without a day in their queries, which get one."""


def days_of(
    table: StreamingTable, frames: "Mapping[str, DataFrame]", existing: "Table | None"
) -> Days:
    """Decide from the frames of all flows, and from the existing table."""
    brought = {
        flow: Columns(dict(frame.dtypes), origins_of(frame.schema))
        for flow, frame in frames.items()
    }
    schema = parsed_schema(table.schema).fields if table.schema else ()
    declared = {one.name: one.dataType.simpleString() for one in schema}
    why = obstacle(brought, declared, None if existing is None else existing.partition_by)
    if why is not None:
        return Days(why)
    return Days(added_to=frozenset(flow for flow in brought if DAY not in brought[flow].types))


def obstacle(
    brought: Mapping[str, Columns], declared: Types, existing: Sequence[str] | None
) -> str | None:
    """Return why a table does not get the default partitions, with advice; None if it does.

    `brought` are the columns of each flow, `declared` those of the table's schema, `existing` the
    partitions of the existing table: one partitioned by topic and day stays so. A `day` of the
    user's own is never replaced or cast: one that is not a date has another meaning.
    """
    for flow, columns in brought.items():
        if (why := _lacking(flow, columns, is_made=existing == PARTITIONS)) is not None:
            return why
    kinds = {flow: columns.types for flow, columns in brought.items()}
    for what, types in (*kinds.items(), ("its schema", declared)):
        for name, kind in types.items():
            if name.lower() == DAY and (name, kind) != (DAY, "date"):
                return (
                    f"{what} has a column {name} of its own ({kind}); give that another name, or"
                    f" make it a date called {DAY}"
                )
    return MADE_WHOLE if existing == () else None


def _lacking(flow: str, columns: Columns, *, is_made: bool) -> str | None:
    """Return the problem of a flow that lacks the topic or timestamp of its records."""
    for name, kind in _NEEDED.items():
        found = columns.types.get(name)
        if found != kind:
            what = f"no {name}" if found is None else f"{name} as {found}"
            return f"{flow} selects {what}; select the record's topic and timestamp by these names"
        if not is_made and columns.origins.get(name) != origin(RECORD, name):
            return (
                f"{name} of {flow} comes from the payload or a computation; rename it"
                f" and select the record's {name} by this name, or declare PARTITIONED BY"
            )
    return None


def record_origins(prefix: str) -> Origins:
    """Return the origins of a source's columns about the record, with the source's prefix."""
    return {prefix + name: origin(RECORD, name) for name in _NEEDED}


def with_day(query: Query) -> Query:
    """Return a query with the day of the records added."""
    return then(query, add_day)


def add_day(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    return rows.withColumn(DAY, F.expr(_DAY_OF_TIMESTAMP))


def table_of_day(known: str) -> str | None:
    """Return the raw table of a day column with this origin, or None."""
    table, _, column = known.rpartition(".")
    return table if column == DAY else None
