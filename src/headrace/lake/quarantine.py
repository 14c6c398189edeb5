"""What is kept of rows that a table refuses, in a table beside it."""

import pyarrow as pa

PARTITION = "partition"
"""The rule of rows whose partition no reader of Delta could read."""
UNREADABLE = "unreadable"
"""The rule that payloads break which cannot be decoded, as quarantine names it."""

TOLD_BY = "_source"
"""In the JSON of what cannot be read: which source of its flow could not."""

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
