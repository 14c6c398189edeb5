"""Iteration over the batches of a segment file by their headers."""

from collections.abc import Iterator
from struct import Struct

from headrace.errors import CorruptMessage
from headrace.protocol.batches import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, read_header
from headrace.runtime import files

_CHUNK_BYTES = 64 * 1024
_BATCHES_BYTES = 1 << 20
_LOOK_BYTES = 8 * 1024
_SPAN = Struct(">qi11xi")  # Base offset, length and, eleven bytes later, the last offset's delta.
_unpack_span = _SPAN.unpack_from


def headers_in(fd: int, position: int, end_position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch in a part of a file, in order.

    Small batches are read many at a time; from a batch larger than a chunk only the header is
    read. An invalid batch, or one that reaches past the end, raises `CorruptMessage`.
    """
    chunk = b""
    chunk_position = position
    while position < end_position:
        if position + HEADER_SIZE > chunk_position + len(chunk):
            chunk_position = position
            chunk = files.pread(fd, min(_CHUNK_BYTES, end_position - position), position)
        header = read_header(chunk, position - chunk_position, data_position=chunk_position)
        if position + header.size > end_position:
            raise CorruptMessage(f"the batch at position {position} is cut off")
        yield position, header
        position += header.size


def batches_in(
    fd: int, position: int, end_position: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of each batch."""
    chunk, start = memoryview(b""), position
    while position < end_position:
        chunk, start = _covering(fd, chunk, start, position, HEADER_SIZE, end_position)
        header = read_header(chunk, position - start, data_position=start)
        chunk, start = _covering(fd, chunk, start, position, header.size, end_position)
        yield position, header, chunk[position - start : position - start + header.size]
        position += header.size


def _covering(
    fd: int, chunk: memoryview, start: int, position: int, size: int, end_position: int
) -> tuple[memoryview, int]:
    """Return a chunk that has some bytes from a position on; this one if possible."""
    if position + size <= start + len(chunk):
        return chunk, start
    wanted = min(max(size, _BATCHES_BYTES), end_position - position)
    chunk = memoryview(files.pread(fd, wanted, position))
    if len(chunk) < size:
        raise CorruptMessage(f"the batch at position {position} is cut off")
    return chunk, position


def find_offset(fd: int, position: int, end_position: int, offset: int) -> int:
    """The start of the first batch that ends at or after an offset, or the end.

    Every fetch that does not continue another uses this function, so it creates no headers. The end
    is the end of a batch, so a batch that claims to reach beyond is damaged and is not served.
    """
    chunk = b""
    chunk_position = position
    while position < end_position:
        at = position - chunk_position
        if at + _SPAN.size > len(chunk):
            chunk_position, at = position, 0
            chunk = files.pread(fd, min(_LOOK_BYTES, end_position - position), position)
            _check_room(chunk, position)
        base_offset, length, last_offset_delta = _unpack_span(chunk, at)
        _check_length(length, position)
        next_position = position + length + LOG_OVERHEAD
        if next_position > end_position:
            raise CorruptMessage(f"the batch at position {position} claims {length} bytes")
        if base_offset + last_offset_delta >= offset:
            return position
        position = next_position
    return end_position


def find_boundary(fd: int, position: int, end_position: int, size_max: int) -> tuple[int, int]:
    """The end of the first batch, and of the last batch that fits into a size."""
    size_max = max(0, size_max)
    first_end = last_end = position
    chunk = b""
    chunk_position = start = position
    while position < end_position:
        at = position - chunk_position
        if at + _SPAN.size > len(chunk):
            chunk_position, at = position, 0
            chunk = files.pread(fd, min(_LOOK_BYTES, size_max + _SPAN.size), position)
            _check_room(chunk, position)
        length = _unpack_span(chunk, at)[1]
        _check_length(length, position)
        position += length + LOG_OVERHEAD
        if first_end == start:
            first_end = position
        if position - start > size_max:
            break
        last_end = position
    return first_end, last_end


def _check_room(chunk: bytes, position: int) -> None:
    if len(chunk) < _SPAN.size:
        raise CorruptMessage(f"there is no room for a batch header at position {position}")


def _check_length(length: int, position: int) -> None:
    if length + LOG_OVERHEAD < HEADER_SIZE:
        raise CorruptMessage(f"the batch at position {position} claims {length} bytes")
