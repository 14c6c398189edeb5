"""The rule that a table's partitions make: their dates must be such as readers of Delta can read.

Nobody declares it. A source of ours brings no such dates, but a query may compute them: databases
write `infinity` as the last day of their calendar. Where a table has a quarantine, such rows go
there like others that it refuses; where it has none, the batch is refused with the reason.
"""

from collections.abc import Collection, Sequence

import pyarrow as pa

from headrace.lake.data_files import PARTITION_YEARS
from headrace.lake.quarantine import PARTITION
from headrace.pipelines.model import Expectation, RowRule, Violation


def partition_rules(
    schema: pa.Schema, partition_by: Sequence[str], given: Collection[str]
) -> tuple[Expectation, ...]:
    """One for all partition columns of dates and times, as far as the rows have these."""
    least, most = PARTITION_YEARS
    conditions = [
        f"ifnull(year({_quoted(name)}) BETWEEN {least} AND {most}, true)"
        for name in partition_by
        if name in given and pa.types.is_temporal(schema.field(name).type)
    ]
    if not conditions:
        return ()
    return (Expectation(PARTITION, RowRule(" AND ".join(conditions)), Violation.QUARANTINE),)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
