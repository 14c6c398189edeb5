"""Walking over the batches of a segment file by their headers."""

from collections.abc import Iterator

from headrace.errors import CorruptMessage
from headrace.protocol.batches import HEADER_SIZE, BatchHeader, read_header
from headrace.runtime import files

_CHUNK_BYTES = 64 * 1024


def headers_in(fd: int, position: int, end_position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch in a part of a file, in order.

    Small batches are read many at a time; from a batch larger than a chunk only the header is
    read. A batch that cannot be one, or that reaches past the end, is `CorruptMessage`.
    """
    chunk = b""
    chunk_position = position
    while position < end_position:
        if position + HEADER_SIZE > chunk_position + len(chunk):
            chunk_position = position
            chunk = files.pread(fd, min(_CHUNK_BYTES, end_position - position), position)
            if len(chunk) < HEADER_SIZE:
                raise CorruptMessage(f"{len(chunk)} bytes at position {position} are no batch")
        header = read_header(chunk, position - chunk_position)
        if position + header.size > end_position:
            raise CorruptMessage(f"the batch at position {position} is cut off")
        yield position, header
        position += header.size
