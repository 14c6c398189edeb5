"""What is kept of rows that a table refuses, and whether it may refuse any."""

from collections.abc import Sequence

import pyarrow as pa

from headrace.pipelines.model import ERROR, Expectation, Violation

UNREADABLE = "unreadable"
"""The rule that rows with an `_error` break, as quarantine names it."""

QUARANTINED_AT = "quarantined_at"
QUARANTINE_SCHEMA = pa.schema(
    [
        (QUARANTINED_AT, pa.timestamp("us", "UTC")),
        ("table", pa.string()),
        ("flow", pa.string()),
        ("rule", pa.string()),
        ("reason", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("payload", pa.binary()),
        ("row", pa.string()),
    ]
)
"""A refused row: why, where it came from, its bytes if the flow kept them, its columns as JSON."""


def may_refuse(names: Sequence[str], expectations: Sequence[Expectation]) -> bool:
    """Whether rows with these columns may have to go to quarantine."""
    return ERROR in names or any(e.on_violation is Violation.QUARANTINE for e in expectations)
