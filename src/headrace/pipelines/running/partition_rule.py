"""The rule that a table's partitions make: their dates must be such as readers of Delta can read.

Nobody declares it. A source of ours brings no such dates, but a query may compute them: databases
write `infinity` as the last day of their calendar. Where a table has a quarantine, such rows go
there like others that it refuses; where it has none, the batch is refused with the reason.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pyarrow as pa

from headrace.lake.partitions import PARTITION_YEARS
from headrace.lake.quarantine import PARTITION
from headrace.pipelines.model import Expectation, RowRule, Violation
from headrace.spark.tables.frames import quoted


class Deletes(NamedTuple):
    """The column that marks events by which a key goes, and what they need: their key."""

    column: str
    keys: tuple[str, ...]


def partition_rules(
    schema: pa.Schema,
    partition_by: Sequence[str],
    given: Collection[str],
    deletes: Deletes | None = None,
) -> tuple[Expectation, ...]:
    """One for all partition columns of dates and times, as far as the rows have these.

    Events by which a key goes bring no row, so they pass unless the date is of the key itself:
    else the row would stay that they are to take away.
    """
    conditions = [
        _condition(name, None if deletes is None or name in deletes.keys else deletes.column)
        for name in partition_by
        if name in given and pa.types.is_temporal(schema.field(name).type)
    ]
    if not conditions:
        return ()
    return (Expectation(PARTITION, RowRule(" AND ".join(conditions)), Violation.QUARANTINE),)


def _condition(column: str, is_delete: str | None) -> str:
    least, most = PARTITION_YEARS
    holds = f"ifnull(year({quoted(column)}) BETWEEN {least} AND {most}, true)"
    return holds if is_delete is None else f"({quoted(is_delete)} OR {holds})"
