"""The order of change events: a column, or an expression that becomes one."""

from typing import TYPE_CHECKING

from headrace.pipelines.model import Changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEQUENCE = "_sequence"
"""The column of an expression; it is not part of the table."""


def sequence_column(changes: Changes, columns: list[str]) -> str:
    """Return the column of `sequenced` events that has their sequence."""
    return changes.sequence_by if changes.sequence_by in columns else SEQUENCE


def sequenced(events: "DataFrame", changes: Changes) -> "DataFrame":
    """Return the events with a column of their sequence."""
    if changes.sequence_by in events.columns:
        return events
    from pyspark.sql import functions as F  # noqa: N812

    return events.withColumn(SEQUENCE, F.expr(changes.sequence_by))
