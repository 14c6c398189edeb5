"""Messages to bytes and back, in any version that Kafka speaks.

Each message and version has a reader and a writer of its own, compiled from the field table
when it is first needed (about a millisecond) and kept: plain Python without interpretation.
Code that handles one message a thousand times a second asks for `reader` or `writer` once.
"""

import struct
from typing import Any, TypeVar

from headrace.errors import UnsupportedVersion
from headrace.protocol.message import Message
from headrace.protocol.primitives import DecodeError, reading_failure
from headrace.protocol.readers import BoundedReader, Reader, compile_bounded_reader, compile_reader
from headrace.protocol.writers import Writer, compile_writer

__all__ = [
    "DecodeError",
    "decode",
    "encode",
    "encode_into",
    "read",
    "read_bounded",
    "reader",
    "writer",
]

ELEMENT_SIZE_MIN = 1
"""Minimum size of an element of an array, in bytes."""

M = TypeVar("M", bound=Message)

_REFUSALS = (DecodeError, struct.error, IndexError, UnicodeDecodeError)
"""The exceptions of compiled readers for bytes that are not the message."""

_readers: dict[tuple[type[Message], int], Reader[Any]] = {}
_bounded_readers: dict[tuple[type[Message], int], BoundedReader[Any]] = {}
_writers: dict[tuple[type[Message], int], Writer] = {}


def encode(message: Message, version: int) -> bytearray:
    """The bytes of a message.

    A value that the version has no field for is left out where Kafka calls the field
    ignorable; elsewhere it is an error, because leaving it out would change the meaning.
    """
    out = bytearray()
    (_writers.get((type(message), version)) or writer(type(message), version))(message, out)
    return out


def encode_into(message: Message, version: int, out: bytearray) -> None:
    """Append the bytes of a message to a buffer."""
    (_writers.get((type(message), version)) or writer(type(message), version))(message, out)


def decode(
    message: type[M], version: int, data: bytes | bytearray | memoryview, position: int = 0
) -> M:
    """The message that fills `data` from `position` to the end; `DecodeError` for anything else.

    Record sets in it are views of `data`.
    """
    take = _readers.get((message, version)) or reader(message, version)
    try:
        decoded: M
        decoded, end = take(data if type(data) is memoryview else memoryview(data), position)
    except _REFUSALS as error:
        raise DecodeError(
            f"not a {message.__name__} v{version}: {reading_failure(error)}"
        ) from error
    if end != len(data):
        raise DecodeError(f"not a {message.__name__} v{version}: {len(data) - end} bytes are left")
    return decoded


def read(
    message: type[M], version: int, data: bytes | bytearray | memoryview, position: int = 0
) -> tuple[M, int]:
    """The message at `position`, and the position after it."""
    take = _readers.get((message, version)) or reader(message, version)
    try:
        return take(memoryview(data), position)
    except _REFUSALS as error:
        raise DecodeError(
            f"not a {message.__name__} v{version}: {reading_failure(error)}"
        ) from error


def read_bounded(
    message: type[M], version: int, data: memoryview, position: int, elements_max: int
) -> tuple[M, int]:
    """The message at `position` of untrusted bytes, with a limit on array elements.

    A short message cannot exceed the limit and is read without counting.
    """
    if len(data) - position <= elements_max * ELEMENT_SIZE_MIN:
        return read(message, version, data, position)
    take = _bounded_readers.get((message, version))
    if take is None:
        take = compile_bounded_reader(message, _checked(message, version))
        _bounded_readers[message, version] = take
    try:
        return take(data, position, elements_max)
    except _REFUSALS as error:
        raise DecodeError(
            f"not a {message.__name__} v{version}: {reading_failure(error)}"
        ) from error


def reader(message: type[M], version: int) -> Reader[M]:
    """The compiled reader; it raises `struct.error`, `IndexError` and the like as they come."""
    found = _readers.get((message, version))
    if found is None:
        found = _readers[message, version] = compile_reader(message, _checked(message, version))
    return found


def writer(message: type[Message], version: int) -> Writer:
    """The compiled writer."""
    found = _writers.get((message, version))
    if found is None:
        found = _writers[message, version] = compile_writer(message, _checked(message, version))
    return found


def _checked(message: type[Message], version: int) -> int:
    if version not in message.VERSIONS:
        known = message.VERSIONS
        raise UnsupportedVersion(
            f"{message.__name__} has versions {known[0]} to {known[-1]}, not {version}"
        )
    return version
