"""The records inside a batch's block: varint fields, one after the other.

    svar length · i8 unused · svar timestamp delta · svar offset delta · svar key length · key
    svar value length · value · svar count of headers · (svar length · name · svar length · value)*

A length of -1 is null. Positions count from the block's start, not from the batch's.
"""

from collections.abc import Iterator
from typing import Final

from headrace.errors import CorruptMessage

RECORD_SIZE_MIN: Final = 7
"""A record of null key and null value: seven fields of a byte each."""

RecordSpan = tuple[int, int, int, int, bytes | None, bool]
"""Start and end of a record in its block, timestamp delta, offset delta, key, has a value."""

Headers = tuple[tuple[str, bytes | None], ...]

_ONE_BYTE = tuple(bytes((number,)) for number in range(128))


def scan_records(block: bytes, count: int) -> Iterator[RecordSpan]:
    """Walk `count` records of a plain block, checking every length against the bytes left.

    The block must hold exactly these records. Varints of one and two bytes, nearly all of
    them, are read in line: a call for each would cost more than all the rest.
    """
    if not 0 <= count <= len(block) // RECORD_SIZE_MIN:
        raise CorruptMessage(f"{len(block)} bytes cannot hold {count} records")
    block_end = len(block)
    position = 0
    try:
        for _ in range(count):
            start = position
            length = block[position]
            position += 1
            if length > 127:
                if (high := block[position]) < 128:
                    length += (high << 7) - 128
                    position += 1
                else:
                    length, position = _long_varint(block, start)
            end = position + (length >> 1)
            if length & 1 or end > block_end:
                raise CorruptMessage(f"a record at {start} claims bytes beyond its batch")
            timestamp_delta = block[position + 1]  # The byte before it is unused attributes.
            position += 2
            if timestamp_delta > 127:
                if (high := block[position]) < 128:
                    timestamp_delta += (high << 7) - 128
                    position += 1
                else:
                    timestamp_delta, position = _long_varint(block, position - 1, 70)
            offset_delta = block[position]
            position += 1
            if offset_delta > 127:
                if (high := block[position]) < 128:
                    offset_delta += (high << 7) - 128
                    position += 1
                else:
                    offset_delta, position = _long_varint(block, position - 1)
            key_size = block[position]
            position += 1
            if key_size > 127:
                key_size, position = _long_varint(block, position - 1)
            key: bytes | None = None
            if not key_size & 1:
                key_end = position + (key_size >> 1)
                key = block[position:key_end]
                position = key_end
            value_size = block[position]
            position += 1
            if value_size > 127:
                if (high := block[position]) < 128:
                    value_size += (high << 7) - 128
                    position += 1
                else:
                    value_size, position = _long_varint(block, position - 1)
            if not value_size & 1:
                position += value_size >> 1
            if position >= end:  # At least the count of headers comes after the value.
                raise CorruptMessage(f"the fields of a record at {start} exceed its length")
            yield (
                start,
                end,
                (timestamp_delta >> 1) ^ -(timestamp_delta & 1),
                (offset_delta >> 1) ^ -(offset_delta & 1),
                key,
                not value_size & 1,
            )
            position = end
    except IndexError:
        raise CorruptMessage("the records of a batch end too early") from None
    if position != block_end:
        raise CorruptMessage(f"a batch has {block_end - position} bytes after its records")


def append_record(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> None:
    """Write one record at the end of a block."""
    body = bytearray(1)
    body += varint(timestamp_delta)
    body += varint(offset_delta)
    _append_bytes(body, key)
    _append_bytes(body, value)
    body += varint(len(headers))
    for name, content in headers:
        _append_bytes(body, name.encode())
        _append_bytes(body, content)
    out += varint(len(body))
    out += body


def value_and_headers(block: bytes, start: int, end: int) -> tuple[bytes | None, Headers]:
    """Value and headers, whose lengths the scan has not checked."""
    try:
        position = read_varint(block, start)[1] + 1
        position = read_varint(block, position, 70)[1]
        position = read_varint(block, position)[1]
        position = _read_bytes(block, position, end)[1]
        value, position = _read_bytes(block, position, end)
        count, position = read_varint(block, position)
        if not 0 <= count <= end - position:
            raise CorruptMessage(f"a record claims {count} headers")
        found = []
        for _ in range(count):
            name, position = _read_bytes(block, position, end)
            if name is None:
                raise CorruptMessage("a record has a header without a name")
            content, position = _read_bytes(block, position, end)
            found.append((name.decode(errors="replace"), content))
    except IndexError:
        raise CorruptMessage("the records of a batch end too early") from None
    if position != end:
        raise CorruptMessage("the fields of a record do not fill its length")
    return value, tuple(found)


def varint(number: int) -> bytes:
    """A zigzag varint: small numbers of either sign are short."""
    number = (number << 1) ^ (number >> 63)
    if number < 128:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, position: int, bits_max: int = 35) -> tuple[int, int]:
    """A zigzag varint and the position after it; `bits_max` is 70 for 64-bit numbers."""
    number, position = _long_varint(data, position, bits_max)
    return (number >> 1) ^ -(number & 1), position


def _long_varint(data: bytes, position: int, bits_max: int = 35) -> tuple[int, int]:
    """The number still in zigzag form, and the position after it."""
    number = 0
    for shift in range(0, bits_max, 7):
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> (32 if bits_max == 35 else 64):
                break
            return number, position
    raise CorruptMessage("a record of a batch holds a number that is too long")


def _append_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out += _ONE_BYTE[1]
    else:
        out += varint(len(data))
        out += data


def _read_bytes(block: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(block, position)
    if size < 0:
        return None, position
    if size > end - position:
        raise CorruptMessage("a field of a record exceeds the record")
    return block[position : position + size], position + size
