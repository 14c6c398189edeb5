"""What puts change events in order: one of their columns, or an expression made into one."""

from typing import TYPE_CHECKING

from headrace.pipelines.model import Changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEQUENCE = "_sequence"
"""The column that an expression becomes; it is no part of the table."""


def sequence_column(changes: Changes, columns: list[str]) -> str:
    """The column of the events, once they are `sequenced`, that has their sequence."""
    return changes.sequence_by if changes.sequence_by in columns else SEQUENCE


def sequenced(events: "DataFrame", changes: Changes) -> "DataFrame":
    """The events with a column of their sequence."""
    if changes.sequence_by in events.columns:
        return events
    from pyspark.sql import functions as F  # noqa: N812

    return events.withColumn(SEQUENCE, F.expr(changes.sequence_by))
