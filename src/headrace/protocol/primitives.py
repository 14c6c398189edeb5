"""The rare cases of compiled readers and writers: long lengths, tags, errors.

The compiled code contains the usual cases inline, because a call costs as much as the work. A
compiled reader reads one byte for a length or a tag count and calls these functions only if more
bytes follow.
"""

from typing import NoReturn

from headrace.errors import InvalidRequest
from headrace.protocol.request_limits import TAGS_MAX

STRING_SIZE_MAX = 0x7FFF
"""Kafka's limit for any string, in bytes."""


class DecodeError(InvalidRequest):
    """Bytes that are not a valid message."""


def reading_failure(error: Exception) -> str:
    """Return the error of a reader as a message for the sender of the bytes."""
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is not UTF-8"
    return str(error) if isinstance(error, DecodeError) else "it ended too early"


def long_length(data: memoryview, position: int, first: int) -> tuple[int, int]:
    """The value of an unsigned varint whose first byte was read already, and its end."""
    value = first & 0x7F
    byte = data[position]
    if byte < 0x80:  # Record sets up to 16 KB have two bytes: a frequent case.
        return value | byte << 7, position + 1
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError("a varint is longer than five bytes")


def read_uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint: the value, and where it ends."""
    first = data[position]
    return (first, position + 1) if first < 0x80 else long_length(data, position + 1, first)


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if 0x7F < value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    append_uvarint(out, value)
    return bytes(out)


def append_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned varint, for code that builds bytes by hand."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_tag(data: memoryview, position: int) -> tuple[int, int, int]:
    """The head of a tagged field: its tag, where its content starts, and where it ends."""
    tag, position = read_uvarint(data, position)
    size, position = read_uvarint(data, position)
    if position + size > len(data):
        raise DecodeError(f"tagged field {tag}: {size} bytes are announced and not there")
    return tag, position, position + size


def read_tag_count(data: memoryview, position: int, first: int) -> tuple[int, int]:
    """The number of tagged fields; each takes at least two bytes."""
    count, position = (first, position) if first < 0x80 else long_length(data, position, first)
    if count > TAGS_MAX:
        refuse_count("tagged fields")
    if count * 2 > len(data) - position:
        raise DecodeError(f"{count} tagged fields are announced and not there")
    return count, position


def skip_tags(data: memoryview, position: int, first: int) -> int:
    """Skip tagged fields of newer peers; return the position after them."""
    count, position = read_tag_count(data, position, first)
    for _ in range(count):
        _, _, position = read_tag(data, position)
    return position


def refuse_length(name: str, length: int) -> NoReturn:
    """Reject a string, byte field or array that is longer than the message."""
    if length < 0:
        raise DecodeError(f"{name} must not be null")
    raise DecodeError(f"{name}: a length of {length} is announced, the message ends before")


def refuse_count(name: str) -> NoReturn:
    """A message of a client exceeds the limit of elements."""
    raise DecodeError(f"{name}: the message has too many elements; split the request")


def refuse_tag(tag: int) -> NoReturn:
    """A tagged field's content and its announced size differ."""
    raise DecodeError(f"tagged field {tag}: its size does not match its content")
