"""Tables of raw are partitioned by topic and day, unless they say otherwise.

Whoever looks for what came by a topic on a day is to read no more than that. So a table that says
nothing of partitions, and whose flows all bring the topic and the time of their records, gets the
day as one more column. A payload may have columns of these names, and a query may compute some:
these may have any number of values, each of which would become a directory. So only what the source
tells of a record counts, under whatever names it came; `origins` says what cannot be told. The day
is that in UTC, whatever the session's time zone is: where a row lies must not depend on who has
written it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from headrace.pipelines.analysing.origins import RECORD, Origins, origin, origins_of
from headrace.pipelines.analysing.stand_ins import parsed_schema
from headrace.pipelines.model import RAW, Dataset, Query, StreamingTable
from headrace.pipelines.names import zone_of
from headrace.pipelines.resolving import then

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.lake.tables import Table

DAY = "day"
PARTITIONS = ("topic", DAY)
Types = Mapping[str, str]
"""Columns by name, with Spark's short names of their types."""
MADE_WHOLE = "it was made without; build it anew with headrace pipelines replay FOLDER"

_NEEDED = {"topic": "string", "timestamp": "timestamp"}
_DAY_OF_TIMESTAMP = "date_from_unix_date(CAST(floor(unix_seconds(timestamp) / 86400) AS INT))"


def is_left_open(dataset: Dataset) -> TypeGuard[StreamingTable]:
    """Whether a dataset is a table of raw that says nothing of its partitions."""
    if not isinstance(dataset, StreamingTable) or zone_of(dataset.name) != RAW:
        return False
    return dataset.partition_by is None


@dataclass(frozen=True, slots=True)
class Columns:
    """What a flow brings to its table."""

    types: Types
    origins: Origins = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Days:
    """What becomes of such a table: partitions by topic and day, unless something is in the way."""

    obstacle: str | None = None
    """Why it has none, with what to do."""
    added_to: frozenset[str] = frozenset()
    """The flows that bring no day by their queries, and get one."""


def days_of(
    table: StreamingTable, frames: "Mapping[str, DataFrame]", standing: "Table | None"
) -> Days:
    """By the frames of all its flows, and the table that is there."""
    brought = {
        flow: Columns(dict(frame.dtypes), origins_of(frame.schema))
        for flow, frame in frames.items()
    }
    schema = parsed_schema(table.schema).fields if table.schema else ()
    declared = {one.name: one.dataType.simpleString() for one in schema}
    why = obstacle(brought, declared, None if standing is None else standing.partition_by)
    if why is not None:
        return Days(why)
    return Days(added_to=frozenset(flow for flow in brought if DAY not in brought[flow].types))


def obstacle(
    brought: Mapping[str, Columns], declared: Types, standing: Sequence[str] | None
) -> str | None:
    """Why such a table is not partitioned by topic and day, with what to do; None if it is.

    `brought` are the columns of each flow, `declared` those that stand with the table, `standing`
    is by what the table is partitioned that is there: one that was made by topic and day stays so,
    whosever these were. A `day` of the user's own is never replaced or cast: one that is no date
    means something else.
    """
    for flow, columns in brought.items():
        if (why := _lacking(flow, columns, is_made=standing == PARTITIONS)) is not None:
            return why
    kinds = {flow: columns.types for flow, columns in brought.items()}
    for what, types in (*kinds.items(), ("its schema", declared)):
        for name, kind in types.items():
            if name.lower() == DAY and (name, kind) != (DAY, "date"):
                return (
                    f"{what} has a column {name} of its own ({kind}); give that another name, or"
                    f" make it a date called {DAY}"
                )
    return MADE_WHOLE if standing == () else None


def _lacking(flow: str, columns: Columns, *, is_made: bool) -> str | None:
    """What a flow does not bring as its source tells it of a record."""
    for name, kind in _NEEDED.items():
        found = columns.types.get(name)
        if found != kind:
            what = f"no {name}" if found is None else f"{name} as {found}"
            return f"{flow} brings {what}; select the record's topic and timestamp by these names"
        if not is_made and columns.origins.get(name) != origin(RECORD, name):
            return (
                f"{name}, as {flow} brings it, is of the payload or computed; call that otherwise"
                f" and select the record's {name} by this name, or declare PARTITIONED BY"
            )
    return None


def record_origins(prefix: str) -> Origins:
    """What a source tells of a record, by the names that it has with the source's prefix."""
    return {prefix + name: origin(RECORD, name) for name in _NEEDED}


def with_day(query: Query) -> Query:
    """A query whose rows bring the day of their records."""
    return then(query, add_day)


def add_day(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    return rows.withColumn(DAY, F.expr(_DAY_OF_TIMESTAMP))


def table_of_day(known: str) -> str | None:
    """The table of raw that a column of this origin is the day of; None if it is none."""
    table, _, column = known.rpartition(".")
    return table if column == DAY else None
