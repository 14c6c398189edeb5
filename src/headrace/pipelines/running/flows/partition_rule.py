"""The rule of a table's partitions: their dates must be readable by readers of Delta.

The rule is not declared. Sources of headrace have no such dates, but a query may compute them:
databases write `infinity` as the last day of their calendar. Such rows go to quarantine; for a
table without one, the batch is rejected with the reason.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pyarrow as pa

from headrace.lake.partitions import PARTITION_YEARS
from headrace.lake.quarantine import PARTITION
from headrace.pipelines.model import Expectation, RowRule, Violation
from headrace.spark.tables.frames import quoted


class Deletes(NamedTuple):
    """The column that marks deletes, and the key columns, which a delete needs."""

    column: str
    keys: tuple[str, ...]


def partition_rules(
    schema: pa.Schema,
    partition_by: Sequence[str],
    given: Collection[str],
    deletes: Deletes | None = None,
) -> tuple[Expectation, ...]:
    """Return one rule for all partition columns with dates or times that the rows have.

    A delete has no row, so it passes unless the date is part of the key itself: otherwise the row
    that it deletes would stay.
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
