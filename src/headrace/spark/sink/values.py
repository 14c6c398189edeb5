"""Values as JSON, one object per row, in the shape of Spark's `to_json`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.lake.far_times import python_values

ENCODER = msgspec.json.Encoder(decimal_format="number")


def json_values(batch: Any) -> list[bytes | str | None]:
    """A JSON object for each row of a RecordBatch, without the columns that are null.

    A row of nothing but nulls is a tombstone: that is how the source reads one, too.
    """
    encode = ENCODER.encode
    values: list[bytes | str | None] = []
    for row in rows_of(batch):
        present = {name: value for name, value in row.items() if value is not None}
        values.append(encode(present) if present else None)
    return values


def rows_of(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a RecordBatch as Python values."""
    names = batch.schema.names
    columns = [python_values(column, maps_as_dicts=True) for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))
