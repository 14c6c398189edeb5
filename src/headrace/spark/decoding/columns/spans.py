"""Where values lie in a block of payloads: the first half of decoding, before any is converted.

A scanner walks over the payloads once and notes, for each column and row, where the value begins
and ends and of which kind it is. Converters then make one column at a time from such spans, and
scanners of nested values make spans from spans. No object is made per value.
"""

from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import pyarrow as pa

# Kinds of values. Up to NULL there is nothing to convert.
VOID = 0
"""The row has no such column: its payload is null or bad, or the struct around it is null."""
ABSENT = 1
NULL = 2
TRUE = 3
FALSE = 4
INTEGER = 5
FLOAT = 6
STRING = 7
"""Text as it lies there, its quotes outside of the span."""
ESCAPED = 8
"""Text with JSON's backslash escapes."""
DOUBLED = 9
"""Text in which every quote stands for two, as CSV has it."""
OBJECT = 10
ARRAY = 11
SIGNED = 128
"""From here on, plus an ASCII sign: text in which the sign stands before quotes and itself where
these are meant; quotes may stand for two as well."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Values in `data`: where each begins and ends, its kind, and the row it belongs to."""

    data: Any
    starts: Any
    ends: Any
    kinds: Any
    rows: Any

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def address(self) -> int:
        """Where `data` lies, for compiled code; it is there as long as these spans are."""
        return int(self.data.ctypes.data)

    def text(self, index: SupportsIndex) -> bytes:
        """The bytes of one value."""
        return bytes(self.data[self.starts[index] : self.ends[index]])


def spans_of(payloads: Any) -> Spans:
    """A span for each payload; those that are null are void, the others count as objects."""
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
    """Arrow's validity bits from one byte per value, or None if all are valid."""
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid, bitorder="little"))
