"""Decoding of records to columns in plain Python, for few records.

The twin of `compiled`, with the same results. For a handful of records per micro-batch it is
quicker than loading a compiler.
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
    """Decode the records of a chunk within a range of offsets to Arrow arrays."""
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
        offsets=_numbers(pa.int64(), offsets),
        timestamps=_numbers(pa.timestamp("us", tz="UTC"), timestamps),
        keys=_byte_strings(keys) if wanted.keys else None,
        values=_byte_strings(values) if wanted.values else None,
        headers=_header_lists(headers) if wanted.headers else None,
    )


def _header_lists(headers: list[tuple[tuple[str, bytes | None], ...]]) -> Any:
    ends = np.zeros(len(headers) + 1, np.int32)
    np.cumsum([len(found) for found in headers], out=ends[1:], dtype=np.int32)
    names = _byte_strings([name.encode() for found in headers for name, _ in found])
    contents = _byte_strings([content for found in headers for _, content in found])
    return header_column(ends, names, contents)


def _numbers(kind: Any, numbers: list[int]) -> Any:
    """Build an array from buffers, because `pa.array` imports pandas, which takes half a second."""
    buffers = [None, pa.py_buffer(np.array(numbers, np.int64))]
    return pa.Array.from_buffers(kind, len(numbers), buffers, null_count=0)


def _byte_strings(strings: list[bytes | None]) -> Any:
    ends = np.zeros(len(strings) + 1, np.int32)
    np.cumsum([len(string or b"") for string in strings], out=ends[1:], dtype=np.int32)
    is_there = np.array([string is not None for string in strings], np.bool_)
    nulls = len(strings) - int(is_there.sum())
    bits = pa.py_buffer(np.packbits(is_there, bitorder="little")) if nulls else None
    content = pa.py_buffer(b"".join(string or b"" for string in strings))
    buffers = [bits, pa.py_buffer(ends), content]
    return pa.Array.from_buffers(pa.binary(), len(strings), buffers, null_count=nulls)
