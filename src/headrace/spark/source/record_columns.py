"""Chunks of records, and their columns as `plain` and `compiled` return them.

A chunk is a run of batches of one partition, as uncompressed blocks in one buffer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

BLOCK_FIELDS = 6
"""Start and end in the buffer, count, base offset, base timestamp, append time or NO_TIME."""
NO_TIME = -(1 << 63)
TIMESTAMP_MS_MAX = 8_210_235_340_800_000
"""The year 262142, the last that readers of Delta support in partitions of days.

Later times are reduced to it; beyond the year 294247 microseconds do not fit into 64 bits.
"""

Block: TypeAlias = tuple[int, int, int, int, int, int]

HEADERS_TYPE = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]),
    )
)


@dataclass(slots=True)
class Chunk:
    """Blocks of records in one buffer, and their origin."""

    place: str
    data: Any
    """Writable bytes: a view of the response, or decompressed records."""
    blocks: Sequence[Block]
    is_append_time: bool = False

    def damage(self, index: int) -> str:
        """Return the error message for a damaged block."""
        return (
            f"{self.place}: the batch at offset {self.blocks[index][3]} is damaged;"
            " compare the log with a replica's (headrace log, kafka-dump-log)"
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns to build."""

    keys: bool = True
    values: bool = True
    headers: bool = False


@dataclass(slots=True)
class RecordColumns:
    """The records of a chunk as columns; those that are not wanted are None."""

    rows: int
    offsets: Any
    timestamps: Any
    keys: Any = None
    values: Any = None
    headers: Any = None


Decode: TypeAlias = Callable[[Chunk, int, int, Wanted], RecordColumns]


def header_column(list_ends: Any, names: Any, contents: Any) -> Any:
    """Build lists of name and content; null without headers, as in the stock connector.

    Invalid UTF-8 in names is replaced, as by Java's decoder.
    """
    import numpy as np

    try:
        texts = names.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
    pairs = pa.StructArray.from_arrays([texts, contents], fields=list(HEADERS_TYPE.value_type))
    is_empty = np.diff(list_ends) == 0
    bits = np.packbits(~is_empty, bitorder="little")
    nulls = int(is_empty.sum())
    return pa.ListArray.from_buffers(
        HEADERS_TYPE,
        len(list_ends) - 1,
        [pa.py_buffer(bits) if nulls else None, pa.py_buffer(list_ends)],
        null_count=nulls,
        children=[pairs],
    )
