"""Which message of a schema a payload is: the way to it by places, in front of the message.

Confluent's wire format has the places as zigzag numbers with their count before them. The first
message of a file, by far the most frequent, is a single zero byte.
"""

from collections.abc import Sequence

FIRST = (0,)
INDEXES_MAX = 64


def write_indexes(indexes: Sequence[int]) -> bytes:
    if tuple(indexes) == FIRST:
        return b"\0"
    return b"".join(map(zigzag, (len(indexes), *indexes)))


def read_indexes(body: bytes) -> tuple[tuple[int, ...], int] | None:
    """The way to the message, and where the message itself begins; None if there is none."""
    found = read_zigzag(body, 0)
    if found is None or not 0 <= found[0] <= INDEXES_MAX:
        return None
    count, at = found
    if count == 0:
        return FIRST, at
    indexes = []
    for _ in range(count):
        found = read_zigzag(body, at)
        if found is None:
            return None
        index, at = found
        indexes.append(index)
    return tuple(indexes), at


def zigzag(number: int) -> bytes:
    value = number << 1 if number >= 0 else ~(number << 1)
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def read_zigzag(body: bytes, at: int) -> tuple[int, int] | None:
    """A number of at most five bytes, and where it ends."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(body):
            return None
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    return None
