"""The columns of records, and who makes them: the plain twin at first, the compiled one for many.

A chunk is a run of batches of one partition, as plain blocks in one buffer. Both twins take a
chunk and return the same arrays.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

BLOCK_FIELDS = 6
"""Start and end in the buffer, count, base offset, base timestamp, append time or NO_TIME."""
NO_TIME = -(1 << 63)
TIMESTAMP_MS_MAX = 8_210_235_340_800_000
"""The year 262142, the last by which Delta's readers let a table be parted into days.

A time beyond it is taken for it; from the year 294247 on it would have no microseconds in 64 bits.
"""

PLAIN_CHUNK_BYTES_MAX = 1 << 20
PLAIN_BYTES_MAX = 4 << 20
"""A worker that has decoded less than this, in small chunks, does not load the compiled twin."""

Block: TypeAlias = tuple[int, int, int, int, int, int]

HEADERS_TYPE = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]),
    )
)


@dataclass(slots=True)
class Chunk:
    """Blocks of records in one buffer, and where they came from."""

    place: str
    data: Any
    """Writable bytes: a view of the answer, or what was decompressed."""
    blocks: Sequence[Block]
    is_append_time: bool = False

    def damage(self, index: int) -> str:
        """What to say of a block that holds no records."""
        return (
            f"{self.place}: the batch at offset {self.blocks[index][3]} is damaged;"
            " compare the log with a replica's (headrace log, kafka-dump-log)"
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which columns are worth their bytes."""

    keys: bool = True
    values: bool = True
    headers: bool = False


@dataclass(slots=True)
class RecordColumns:
    """The records of a chunk, column by column; what was not wanted is None."""

    rows: int
    offsets: Any
    timestamps: Any
    keys: Any = None
    values: Any = None
    headers: Any = None


Decode: TypeAlias = Callable[[Chunk, int, int, Wanted], RecordColumns]

_plain_bytes = 0


def decoding_of(size_bytes: int) -> Decode:
    """The twin that is the quicker one for so many bytes more in this process.

    Loading the compiled twin takes as long as the plain one needs for some megabytes, and a small
    micro-batch in a new worker should not wait for it.
    """
    global _plain_bytes
    if "headrace.spark.source.compiled" not in sys.modules:
        _plain_bytes += size_bytes
        if size_bytes <= PLAIN_CHUNK_BYTES_MAX and _plain_bytes <= PLAIN_BYTES_MAX:
            from headrace.spark.source import plain

            return plain.decode
    from headrace.spark.source import compiled

    return compiled.decode


def header_column(list_ends: Any, names: Any, contents: Any) -> Any:
    """Lists of name and content; null for a record without headers, as the stock connector has it.

    A name should be UTF-8; where it is not, its bytes are replaced as Java's decoder does.
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
