"""Message indexes: the place of a payload's message in its schema, written before the message.

Confluent's wire format has the indexes as zigzag numbers with their count before them. The first
message of a file, by far the most frequent, is a single zero byte.
"""

from collections.abc import Sequence

from headrace.serdes.varints import varint_at, write_varint

FIRST = (0,)
INDEXES_MAX = 64


def write_indexes(indexes: Sequence[int]) -> bytes:
    if tuple(indexes) == FIRST:
        return b"\0"
    return b"".join(map(write_varint, (len(indexes), *indexes)))


def read_indexes(body: bytes) -> tuple[tuple[int, ...], int] | None:
    """Return the indexes and the position of the message; None if the bytes have no indexes."""
    try:
        count, position = varint_at(body, 0)
        if not 0 <= count <= INDEXES_MAX:
            return None
        if count == 0:
            return FIRST, position
        indexes = []
        for _ in range(count):
            index, position = varint_at(body, position)
            indexes.append(index)
        return tuple(indexes), position
    except (IndexError, ValueError):
        return None
