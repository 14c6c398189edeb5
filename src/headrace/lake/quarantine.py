"""The schema of quarantine tables, which keep rejected rows."""

import pyarrow as pa

PARTITION = "partition"
"""The rule for rows whose partition value readers of Delta reject."""
UNREADABLE = "unreadable"
"""The rule for payloads that cannot be decoded."""

SOURCE_NAME = "_source"
"""The JSON member with the source of the flow that could not decode a payload."""

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
"""A rejected row: reason, origin, its bytes if the flow kept them, and its columns as JSON."""
