"""Values as JSON, one object per row, in the shape of Spark's `to_json`."""

from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(decimal_format="number")


def json_values(batch: Any) -> list[bytes | str | None]:
    """A JSON object for each row of a RecordBatch, without the columns that are null.

    A row of nothing but nulls is a tombstone: that is how the source reads one, too.
    """
    names = batch.schema.names
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in batch.columns]
    encode = _ENCODER.encode
    values: list[bytes | str | None] = []
    for row in zip(*columns, strict=True):
        present = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        values.append(encode(present) if present else None)
    return values
