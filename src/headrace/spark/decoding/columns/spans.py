"""Spans of values in a block of payloads: the first half of decoding, before conversion.

A scanner walks over the payloads once and records start, end and kind of the value of each column
and row. Converters then build one column at a time from the spans, and scanners of nested values
make spans from spans. No Python object is made per value.
"""

from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import pyarrow as pa

# Kinds of values. Those up to NULL have no value to convert.
VOID = 0
"""A row without the column: its payload is null or bad, or the struct around it is null."""
ABSENT = 1
NULL = 2
TRUE = 3
FALSE = 4
INTEGER = 5
FLOAT = 6
STRING = 7
"""Plain text; quotes are outside of the span."""
ESCAPED = 8
"""Text with JSON's backslash escapes."""
DOUBLED = 9
"""Text with doubled quotes, as in CSV."""
OBJECT = 10
ARRAY = 11
SIGNED = 128
"""Plus an ASCII sign: text in which the sign escapes quotes and itself; quotes may also be
doubled."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Values in `data`: start, end, kind and row of each."""

    data: Any
    starts: Any
    ends: Any
    kinds: Any
    rows: Any

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def address(self) -> int:
        """The address of `data` for compiled code, valid as long as these spans exist."""
        return int(self.data.ctypes.data)

    @property
    def arrays(self) -> tuple[int, Any, Any, Any, Any]:
        """The spans for compiled code, with the address of `data`."""
        return self.address, self.starts, self.ends, self.kinds, self.rows

    def text(self, index: SupportsIndex) -> bytes:
        """Return the bytes of one value."""
        return bytes(self.data[self.starts[index] : self.ends[index]])


def spans_of(payloads: Any) -> Spans:
    """Return a span for each payload: VOID for nulls, OBJECT for the others."""
    count = len(payloads)
    _, offset_buffer, data_buffer = payloads.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[payloads.offset : payloads.offset + count + 1]
    if data_buffer is None or data_buffer.size == 0:
        data = np.zeros(1, np.uint8)
    else:
        data = np.frombuffer(data_buffer, np.uint8)
    kinds = np.full(count, OBJECT, np.uint8)
    if payloads.null_count:
        kinds[payloads.is_null().to_numpy(zero_copy_only=False)] = VOID
    rows = np.arange(count, dtype=np.int32)
    return Spans(data, offsets[:-1].copy(), offsets[1:].copy(), kinds, rows)


def bitmap(is_valid: Any) -> Any:
    """Pack one byte per value into Arrow's validity bits; None if all are valid."""
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid, bitorder="little"))
