"""Records to columns, one Python object after the other: for few records, and as the measure.

The twin of `compiled`. A worker that reads a handful of records per micro-batch has them sooner
this way than by loading a compiler.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import CorruptMessage
from headrace.protocol.records import scan_records, value_and_headers
from headrace.spark.source.errors import DamagedRecords
from headrace.spark.source.record_columns import (
    NO_TIME,
    TIMESTAMP_MS_MAX,
    Chunk,
    RecordColumns,
    Wanted,
    header_column,
)


def decode(chunk: Chunk, first_offset: int, end_offset: int, wanted: Wanted) -> RecordColumns:
    """The records of a chunk within a range of offsets, as Arrow arrays."""
    offsets: list[int] = []
    timestamps: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    headers: list[tuple[tuple[str, bytes | None], ...]] = []
    data = memoryview(chunk.data)
    for index, block in enumerate(chunk.blocks):
        start, end, count, base_offset, base_time, append_time = block
        content = bytes(data[start:end])
        try:
            for at, until, time_delta, offset_delta, key, _ in scan_records(content, count):
                value, found = value_and_headers(content, at, until)
                offset = base_offset + offset_delta
                if first_offset <= offset < end_offset:
                    time = base_time + time_delta if append_time == NO_TIME else append_time
                    offsets.append(offset)
                    timestamps.append(1000 * max(-TIMESTAMP_MS_MAX, min(time, TIMESTAMP_MS_MAX)))
                    keys.append(key)
                    values.append(value)
                    headers.append(found)
        except CorruptMessage as error:
            raise DamagedRecords(f"{chunk.damage(index)} ({error})") from error
    return RecordColumns(
        rows=len(offsets),
        offsets=pa.array(offsets, pa.int64()),
        timestamps=pa.array(timestamps, pa.timestamp("us", tz="UTC")),
        keys=pa.array(keys, pa.binary()) if wanted.keys else None,
        values=pa.array(values, pa.binary()) if wanted.values else None,
        headers=_header_lists(headers) if wanted.headers else None,
    )


def _header_lists(headers: list[tuple[tuple[str, bytes | None], ...]]) -> Any:
    ends = np.zeros(len(headers) + 1, np.int32)
    np.cumsum([len(found) for found in headers], out=ends[1:], dtype=np.int32)
    names = pa.array([name.encode() for found in headers for name, _ in found], pa.binary())
    contents = pa.array([content for found in headers for _, content in found], pa.binary())
    return header_column(ends, names, contents)
