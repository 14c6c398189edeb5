"""Avro's whole numbers: zigzag, seven bits a byte, the lowest first."""

from typing import BinaryIO, Final

from headrace.serdes.avro.errors import CorruptContainer

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
    """A number and where it ends.

    IndexError if the data end before it does, ValueError if it has more bytes than a long.
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
    """The number where a file stands; None at its end."""
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
