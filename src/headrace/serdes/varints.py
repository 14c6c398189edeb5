"""Avro's variable-length integers: zigzag, seven bits a byte, lowest first."""

from typing import BinaryIO, Final

from headrace.serdes.payload_errors import CorruptContainer

BYTES_MAX: Final = 10


def write_varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    written = bytearray()
    while zigzag > 0x7F:
        written.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    written.append(zigzag)
    return bytes(written)


def varint_at(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return a number and its end.

    Raise IndexError for truncated data, ValueError if it has more bytes than a long.
    """
    number = shift = 0
    for here in range(position, position + BYTES_MAX):
        byte = data[here]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), here + 1
    raise ValueError("a number has more bytes than a long")


def read_varint(file: BinaryIO) -> int | None:
    """Read the number at a file's position; None at its end."""
    number = shift = 0
    while byte := file.read(1):
        number |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
        if shift >= 7 * BYTES_MAX:
            raise CorruptContainer("a number has more bytes than a long")
    if shift:
        raise CorruptContainer("the file ends within a number")
    return None
