"""Decoding of records to columns by compiled code, without a Python object per record.

The twin of `plain`, with the same results (tests/property/test_spark_records.py). Importing this
module compiles it, or loads cached code; that takes a third of a second, so workers that read few
records do not import it (`decoding_of` in `reading`).

The bytes are untrusted. Every position is checked against the end of its record before a read, so
damaged bytes give an error code, never a read beyond a buffer.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numba.core.cgutils
import numba.extending
import numpy as np
import pyarrow as pa

from headrace.spark.compiled_cache import prepare_cache
from headrace.spark.source.errors import DamagedRecords
from headrace.spark.source.record_columns import (
    BLOCK_FIELDS,
    TIMESTAMP_MS_MAX,
    Chunk,
    RecordColumns,
    Wanted,
    header_column,
)

IS_CACHED = prepare_cache(__file__)

# numba's own annotations are of little use to a type checker.
types: Any = numba.types
cgutils: Any = numba.core.cgutils
_F = TypeVar("_F", bound=Callable[..., Any])


def _machine_code(signature: Any) -> Callable[[_F], _F]:
    """Compile for these types at import, or load cached code."""
    return cast(Callable[[_F], _F], numba.njit(signature, cache=IS_CACHED, nogil=True))


_BYTES = types.Array(types.uint8, 1, "C")
_INT32S = types.Array(types.int32, 1, "C")
_INT64S = types.Array(types.int64, 1, "C")
_TABLE = types.Array(types.int64, 2, "C")
_COUNTS = types.UniTuple(types.int64, 4)

RECORD_BYTES_MIN = 7
NULL = -1
_DAMAGED = -1
_NO_TIME = np.iinfo(np.int64).min
_TIME_MAX = np.iinfo(np.int64).max


def _typed_copy(
    typing_context: Any, target: Any, at: Any, source: Any, position: Any, size: Any
) -> Any:
    """Define memcpy, which is several times quicker than a loop or a slice for a hundred bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, at, out_of, position, size = arguments
        target_type, _, source_type, _, _ = signature.args
        into = context.make_array(target_type)(context, builder, into).data
        out_of = context.make_array(source_type)(context, builder, out_of).data
        cgutils.raw_memcpy(
            builder, builder.gep(into, [at]), builder.gep(out_of, [position]), size, 1
        )
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


_copy: Any = numba.extending.intrinsic(_typed_copy)


@_machine_code(types.int64(types.uint64))
def _signed(number: Any) -> Any:
    """Decode a zigzag number."""
    return np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1))


@_machine_code(types.UniTuple(types.int64, 2)(_BYTES, types.int64, types.int64))
def _read_varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a zigzag number of up to 32 bits; return it and the next position, or _DAMAGED."""
    number = np.uint64(0)
    for shift in range(0, 35, 7):
        if position >= end:
            return 0, _DAMAGED
        byte = np.uint64(data[position])
        position += 1
        number |= (byte & np.uint64(127)) << np.uint64(shift)
        if byte < 128:
            if number >> np.uint64(32):
                return 0, _DAMAGED
            return _signed(number), position
    return 0, _DAMAGED


@_machine_code(types.UniTuple(types.int64, 2)(_BYTES, types.int64, types.int64))
def _read_varlong(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a zigzag number of up to 64 bits; return it and the next position, or _DAMAGED."""
    number = np.uint64(0)
    for shift in range(0, 70, 7):
        if position >= end:
            return 0, _DAMAGED
        byte = np.uint64(data[position])
        position += 1
        if shift == 63 and byte > 1:
            return 0, _DAMAGED
        number |= (byte & np.uint64(127)) << np.uint64(shift)
        if byte < 128:
            return _signed(number), position
    return 0, _DAMAGED


@_machine_code(types.int64(types.int64, types.int64))
def _later(time: int, delta: int) -> int:
    """Add with saturation at 64 bits; overflow would be undefined."""
    if delta > 0 and time > _TIME_MAX - delta:
        return _TIME_MAX
    if delta < 0 and time < -_TIME_MAX - delta:
        return -_TIME_MAX
    return time + delta


@_machine_code(types.int64(_BYTES, types.int64, types.int64))
def _skip_headers(data: Any, position: int, end: int) -> int:
    """Count headers, which must end exactly at the end of their record; otherwise _DAMAGED."""
    count, position = _read_varint(data, position, end)
    if position < 0 or count < 0 or count > end - position:
        return _DAMAGED
    for _ in range(count):
        size, position = _read_varint(data, position, end)
        if position < 0 or size < 0 or size > end - position:
            return _DAMAGED
        size, position = _read_varint(data, position + size, end)
        if position < 0 or size > end - position:
            return _DAMAGED
        if size > 0:
            position += size
    return count if position == end else _DAMAGED


@_machine_code(
    _COUNTS(
        *(_BYTES, _TABLE, types.int64, types.int64),
        *(_INT64S, _INT64S),
        *(_INT32S, _BYTES, _BYTES, types.boolean),
        *(_INT32S, _BYTES, _BYTES, types.boolean),
        *(_INT64S, types.boolean),
    )
)
def _walk(
    data: Any,
    blocks: Any,
    first_offset: int,
    end_offset: int,
    offsets: Any,
    timestamps: Any,
    key_ends: Any,
    key_bytes: Any,
    key_bits: Any,
    wants_keys: bool,
    value_ends: Any,
    value_bytes: Any,
    value_bits: Any,
    wants_values: bool,
    header_spans: Any,
    wants_headers: bool,
) -> tuple[int, int, int, int]:
    """Fill the columns; return the numbers of rows, null keys, null values and headers.

    A first number of -1 - n means that block n is damaged.
    """
    row, key_at, value_at = 0, 0, 0
    key_nulls, value_nulls, header_total = 0, 0, 0
    for index in range(blocks.shape[0]):
        position, block_end, count = blocks[index, 0], blocks[index, 1], blocks[index, 2]
        base_offset, base_time, append_time = (
            blocks[index, 3],
            blocks[index, 4],
            blocks[index, 5],
        )
        damage = -1 - index
        for _ in range(count):
            length, position = _read_varint(data, position, block_end)
            if position < 0 or length < 0 or length > block_end - position:
                return damage, 0, 0, 0
            end = position + length
            time_delta, position = _read_varlong(data, position + 1, end)
            if position < 0:
                return damage, 0, 0, 0
            offset_delta, position = _read_varint(data, position, end)
            if position < 0:
                return damage, 0, 0, 0
            key_size, key_start = _read_varint(data, position, end)
            if key_start < 0 or key_size > end - key_start:
                return damage, 0, 0, 0
            value_size, value_start = _read_varint(data, key_start + max(key_size, 0), end)
            if value_start < 0 or value_size > end - value_start:
                return damage, 0, 0, 0
            position = value_start + max(value_size, 0)
            headers = 0
            # Most records have no headers, which is one zero byte.
            if position + 1 != end or data[position] != 0:
                headers = _skip_headers(data, position, end)
                if headers < 0:
                    return damage, 0, 0, 0
            offset = base_offset + offset_delta
            if first_offset <= offset < end_offset:
                offsets[row] = offset
                time = append_time if append_time != _NO_TIME else _later(base_time, time_delta)
                timestamps[row] = 1000 * min(max(time, -TIMESTAMP_MS_MAX), TIMESTAMP_MS_MAX)
                if wants_keys:
                    if key_size >= 0:
                        _copy(key_bytes, key_at, data, key_start, key_size)
                        key_at += key_size
                        key_bits[row >> 3] |= np.uint8(1 << (row & 7))
                    else:
                        key_nulls += 1
                    key_ends[row + 1] = key_at
                if wants_values:
                    if value_size >= 0:
                        _copy(value_bytes, value_at, data, value_start, value_size)
                        value_at += value_size
                        value_bits[row >> 3] |= np.uint8(1 << (row & 7))
                    else:
                        value_nulls += 1
                    value_ends[row + 1] = value_at
                if wants_headers:
                    header_spans[2 * row] = position
                    header_spans[2 * row + 1] = headers
                    header_total += headers
                row += 1
            position = end
        if position != block_end:
            return damage, 0, 0, 0
    return row, key_nulls, value_nulls, header_total


@_machine_code(
    types.UniTuple(types.int64, 3)(
        *(_BYTES, _INT64S, types.int64, _INT32S, _INT32S, _BYTES, _INT32S, _BYTES, _BYTES)
    )
)
def _collect_headers(
    data: Any,
    spans: Any,
    rows: int,
    list_ends: Any,
    name_ends: Any,
    name_bytes: Any,
    content_ends: Any,
    content_bytes: Any,
    content_bits: Any,
) -> tuple[int, int, int]:
    """Copy names and contents of headers, which `_walk` has checked."""
    header, name_at, content_at, nulls = 0, 0, 0, 0
    for row in range(rows):
        position, count = spans[2 * row], spans[2 * row + 1]
        _, position = _read_varint(data, position, data.size)
        for _ in range(count):
            size, position = _read_varint(data, position, data.size)
            _copy(name_bytes, name_at, data, position, size)
            name_at += size
            name_ends[header + 1] = name_at
            size, position = _read_varint(data, position + size, data.size)
            if size >= 0:
                _copy(content_bytes, content_at, data, position, size)
                content_at += size
                position += size
                content_bits[header >> 3] |= np.uint8(1 << (header & 7))
            else:
                nulls += 1
            content_ends[header + 1] = content_at
            header += 1
        list_ends[row + 1] = header
    return name_at, content_at, nulls


def decode(chunk: Chunk, first_offset: int, end_offset: int, wanted: Wanted) -> RecordColumns:
    """Decode the records of a chunk within a range of offsets to Arrow arrays."""
    data = np.frombuffer(chunk.data, dtype=np.uint8)
    blocks = np.array(chunk.blocks, dtype=np.int64).reshape(-1, BLOCK_FIELDS)
    _check_counts(chunk, blocks)
    rows_max = int(blocks[:, 2].sum())
    payload_bytes = int((blocks[:, 1] - blocks[:, 0]).sum())
    offsets, timestamps = np.empty(rows_max, np.int64), np.empty(rows_max, np.int64)
    keys = _Bytes.room(rows_max, payload_bytes, is_wanted=wanted.keys)
    values = _Bytes.room(rows_max, payload_bytes, is_wanted=wanted.values)
    header_spans = np.empty(2 * rows_max if wanted.headers else 0, np.int64)
    rows, key_nulls, value_nulls, header_count = _walk(
        *(data, blocks, first_offset, end_offset, offsets, timestamps),
        *(keys.ends, keys.content, keys.bits, wanted.keys),
        *(values.ends, values.content, values.bits, wanted.values),
        *(header_spans, wanted.headers),
    )
    if rows < 0:
        raise DamagedRecords(chunk.damage(-1 - rows))
    return RecordColumns(
        rows=rows,
        offsets=_numbers(pa.int64(), offsets, rows),
        timestamps=_numbers(pa.timestamp("us", tz="UTC"), timestamps, rows),
        keys=keys.array(rows, key_nulls) if wanted.keys else None,
        values=values.array(rows, value_nulls) if wanted.values else None,
        headers=_headers(data, header_spans, rows, header_count) if wanted.headers else None,
    )


class _Bytes:
    """Buffers for a column of byte strings: ends, bytes, and validity bits."""

    def __init__(self, ends: Any, content: Any, bits: Any) -> None:
        self.ends = ends
        self.content = content
        self.bits = bits

    @classmethod
    def room(cls, rows: int, size: int, *, is_wanted: bool) -> "_Bytes":
        rows, size = (rows, size) if is_wanted else (0, 0)
        ends = np.empty(rows + 1, np.int32)
        ends[0] = 0
        return cls(ends, np.empty(size, np.uint8), np.zeros((rows + 7) // 8, np.uint8))

    def array(self, rows: int, nulls: int, kind: Any = None) -> Any:
        bits = pa.py_buffer(self.bits) if nulls else None
        buffers = [bits, pa.py_buffer(self.ends[: rows + 1]), self._bytes(rows)]
        return pa.Array.from_buffers(kind or pa.binary(), rows, buffers, null_count=nulls)

    def _bytes(self, rows: int) -> Any:
        return pa.py_buffer(self.content[: int(self.ends[rows])])


def _headers(data: Any, spans: Any, rows: int, count: int) -> Any:
    """Build the column of headers, with buffers as large as the encoded bytes."""
    names = _Bytes.room(count, data.size, is_wanted=True)
    contents = _Bytes.room(count, data.size, is_wanted=True)
    list_ends = np.empty(rows + 1, np.int32)
    list_ends[0] = 0
    _, _, nulls = _collect_headers(
        *(data, spans, rows, list_ends),
        *(names.ends, names.content, contents.ends, contents.content, contents.bits),
    )
    return header_column(list_ends, names.array(count, 0), contents.array(count, nulls))


def _numbers(kind: Any, numbers: Any, rows: int) -> Any:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(numbers[:rows])], null_count=0)


def _check_counts(chunk: Chunk, blocks: Any) -> None:
    """Reject batches that are too small for their number of records, before allocating for them."""
    sizes, counts = blocks[:, 1] - blocks[:, 0], blocks[:, 2]
    impossible = np.flatnonzero((counts < 0) | (counts > sizes // RECORD_BYTES_MIN))
    if impossible.size:
        raise DamagedRecords(chunk.damage(int(impossible[0])))
