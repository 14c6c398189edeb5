"""Tables of raw are partitioned by topic and day, unless they say otherwise.

Whoever looks for what came by a topic on a day is to read no more than that. So a table that says
nothing of partitions, and whose flows all bring the topic and the time of their records, gets the
day as one more column. It is the day in UTC, whatever the session's time zone is: where a row lies
must not depend on who has written it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

from headrace.pipelines.model import RAW, Dataset, Query, StreamingTable
from headrace.pipelines.names import zone_of
from headrace.pipelines.resolving import then

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY = "day"
PARTITIONS = ("topic", DAY)
Types = Mapping[str, str]
"""Columns by name, with Spark's short names of their types."""

_NEEDED = {"topic": "string", "timestamp": "timestamp"}
_DAY_OF_TIMESTAMP = "date_from_unix_date(CAST(floor(unix_seconds(timestamp) / 86400) AS INT))"


def is_left_open(dataset: Dataset) -> TypeGuard[StreamingTable]:
    """Whether a dataset is a table of raw that says nothing of its partitions."""
    if not isinstance(dataset, StreamingTable) or zone_of(dataset.name) != RAW:
        return False
    return dataset.partition_by is None


def obstacle(
    brought: Mapping[str, Types], declared: Types, standing: Sequence[str] | None
) -> str | None:
    """Why such a table is not partitioned by topic and day, with what to do; None if it is.

    `brought` are the columns of each flow, `declared` those that stand with the table, `standing`
    is by what the table is partitioned that is there. A `day` of the user's own is never replaced
    or cast: one that is no date means something else.
    """
    for flow, types in brought.items():
        for name, kind in _NEEDED.items():
            if types.get(name) != kind:
                found = f"{name} as {types[name]}" if name in types else f"no {name}"
                return f"{flow} brings {found}; select topic and timestamp as its source has them"
    for what, types in (*brought.items(), ("its schema", declared)):
        for name, kind in types.items():
            if name.lower() == DAY and (name, kind) != (DAY, "date"):
                return (
                    f"{what} has a column {name} of its own ({kind}); give that another name, or"
                    f" make it a date called {DAY}"
                )
    if standing == ():
        return "it was made without; build it anew with headrace pipelines replay FOLDER"
    return None


def with_day(query: Query) -> Query:
    """A query whose rows bring the day of their records."""
    return then(query, add_day)


def add_day(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    return rows.withColumn(DAY, F.expr(_DAY_OF_TIMESTAMP))
