"""Avro container files: a schema in the header, then blocks of values between sync markers.

A marker is 16 random bytes stored in the header. With it a reader can start in the middle of a
file: a block belongs to the byte range in which the marker before it begins. So adjacent ranges
together yield each value once.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import SEEK_END
from typing import Any, BinaryIO, Final

from headrace.serdes.avro.blocks import BLOCK_BYTES_MAX, CODECS, compress_block, decompress_block
from headrace.serdes.avro.codec import Decoder, decoder_of, encoder_of
from headrace.serdes.avro.empty_items import EMPTY_ITEMS_MAX, takes_no_bytes
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import CorruptContainer, CorruptPayload
from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.varints import read_varint, write_varint

MAGIC: Final = b"Obj\x01"
MARKER_BYTES: Final = 16
BLOCK_BYTES: Final = 64 << 10
"""Default size at which a writer ends a block, equal to Java's."""

HEADER_BYTES_MAX: Final = 16 << 20
SCAN_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file, before its first block."""

    metadata: Mapping[str, bytes]
    marker: bytes
    size_bytes: int

    @property
    def codec(self) -> str:
        return self.metadata.get("avro.codec", b"null").decode("utf-8", "replace")


class ContainerWriter:
    """Writes values into a new file, or after the values of an existing one (`appending`)."""

    def __init__(
        self,
        file: BinaryIO,
        schema: AvroSchema,
        *,
        codec: str = "deflate",
        block_bytes: int = BLOCK_BYTES,
        metadata: Mapping[str, bytes] | None = None,
    ) -> None:
        refuse_unknown(codec)
        marker = os.urandom(MARKER_BYTES)
        file.write(_header(schema, codec, metadata or {}, marker))
        self._begin(file, schema, codec, marker, block_bytes)

    @staticmethod
    def appending(
        file: BinaryIO, schema: AvroSchema | None = None, *, block_bytes: int = BLOCK_BYTES
    ) -> "ContainerWriter":
        """Continue at the end of a file that is open for reading and writing.

        Values of another schema than the file's are rejected.
        """
        reader = ContainerReader(file)
        if schema is not None and schema.formatted("resolved") != reader.schema.canonical():
            raise CorruptContainer("the file has another schema; write these values to a new file")
        file.seek(-MARKER_BYTES, SEEK_END)
        if file.read(MARKER_BYTES) != reader.header.marker:
            raise CorruptContainer("the file's last block is cut off; copy its whole blocks first")
        writer = ContainerWriter.__new__(ContainerWriter)
        codec, marker = reader.header.codec, reader.header.marker
        writer._begin(file, reader.schema, codec, marker, block_bytes)
        return writer

    def _begin(
        self, file: BinaryIO, schema: AvroSchema, codec: str, marker: bytes, block_bytes: int
    ) -> None:
        self._file = file
        self._encoder = encoder_of(schema)
        self._codec = codec
        self._marker = marker
        self._block_bytes = block_bytes
        self._block = bytearray()
        self._count = 0

    @property
    def waiting_bytes(self) -> int:
        """Size of the current block, which is not in the file yet."""
        return len(self._block)

    def write(self, value: Any) -> None:
        """Append a value to the current block; on `UnfitValue` the block is unchanged."""
        self._encoder.write(self._block, value)
        self._count += 1
        if len(self._block) >= self._block_bytes:
            self.flush()

    def flush(self) -> None:
        """End the block, so that everything written can be read. Call it at the end."""
        if self._count:
            data = compress_block(self._codec, bytes(self._block))
            size = write_varint(self._count) + write_varint(len(data))
            self._file.write(b"".join((size, data, self._marker)))
            self._block = bytearray()
            self._count = 0


class ContainerReader:
    """Reads a file's values, projected to the reader's schema if one is given."""

    def __init__(
        self, file: BinaryIO, reader: AvroSchema | None = None, *, logical: bool = True
    ) -> None:
        self._file = file
        self.header = _read_header(file)
        refuse_unknown(self.header.codec)
        self.schema = _schema_of(self.header)
        self._decoder: Decoder = decoder_of(self.schema, reader, logical=logical)
        self._is_empty = takes_no_bytes(self.schema.root)

    def __iter__(self) -> Iterator[Any]:
        return self.values()

    def values(self, begin: int = 0, end: int | None = None) -> Iterator[Any]:
        """Yield the values of the blocks that belong to a byte range of the file."""
        for count, data in self.blocks(begin, end):
            yield from self._decoded(count, data)

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the number of values and the bytes of each block of a range."""
        position = self._first_block(begin)
        while position is not None and (end is None or position - MARKER_BYTES < end):
            self._file.seek(position)
            found = self._read_block()
            if found is None:
                return
            position = self._file.tell()
            yield found[0], decompress_block(self.header.codec, found[1])

    def _first_block(self, begin: int) -> int | None:
        """Return the position of the first block whose marker does not begin before `begin`."""
        start = self.header.size_bytes
        if begin <= start - MARKER_BYTES:
            return start
        self._file.seek(begin)
        window, position = b"", begin
        while chunk := self._file.read(SCAN_BYTES):
            window += chunk
            found = window.find(self.header.marker)
            if found >= 0:
                return position + found + MARKER_BYTES
            position += max(len(window) - MARKER_BYTES + 1, 0)
            window = window[-MARKER_BYTES + 1 :]
        return None

    def _read_block(self) -> tuple[int, bytes] | None:
        position = self._file.tell()
        count = read_varint(self._file)
        if count is None:
            return None
        size = read_varint(self._file)
        if size is None or not 0 <= size <= BLOCK_BYTES_MAX or count < 0:
            raise CorruptContainer(f"the block at position {position} claims {size} bytes")
        data = self._file.read(size + MARKER_BYTES)
        if len(data) < size + MARKER_BYTES:
            raise CorruptContainer(f"the file ends within the block at position {position}")
        if data[size:] != self.header.marker:
            raise CorruptContainer(f"no sync marker ends the block at position {position}")
        return count, data[:size]

    def _decoded(self, count: int, data: bytes) -> Iterator[Any]:
        if count > (EMPTY_ITEMS_MAX if self._is_empty else len(data)):
            raise CorruptContainer(f"a block of {len(data)} bytes claims {count} values")
        position = 0
        for _ in range(count):
            value, position = self._decoder.read(data, position)
            yield value
        if position != len(data):
            raise CorruptPayload(f"{len(data) - position} bytes are left over in a block")


def refuse_unknown(codec: str) -> None:
    if codec not in CODECS:
        raise CorruptContainer(f"unknown codec {codec!r}; use one of {', '.join(CODECS)}")


def _header(schema: AvroSchema, codec: str, metadata: Mapping[str, bytes], marker: bytes) -> bytes:
    own = {"avro.schema": schema.formatted("resolved").encode(), "avro.codec": codec.encode()}
    members = dict(metadata) | own
    parts = [MAGIC, write_varint(len(members))]
    for name, value in members.items():
        text = name.encode()
        parts += [write_varint(len(text)), text, write_varint(len(value)), value]
    return b"".join([*parts, write_varint(0), marker])


def _read_header(file: BinaryIO) -> Header:
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise CorruptContainer(
            "this is not an Avro container file: it does not begin with Obj and 1"
        )
    metadata: dict[str, bytes] = {}
    while count := _number(file):
        if count < 0:
            _number(file)
        for _ in range(abs(count)):
            name = _bytes(file).decode("utf-8", "replace")
            metadata[name] = _bytes(file)
            if file.tell() > HEADER_BYTES_MAX:
                raise CorruptContainer(f"the header is larger than {HEADER_BYTES_MAX} bytes")
    marker = file.read(MARKER_BYTES)
    if len(marker) < MARKER_BYTES:
        raise CorruptContainer("the file ends within its header")
    return Header(metadata, marker, file.tell())


def _number(file: BinaryIO) -> int:
    number = read_varint(file)
    if number is None:
        raise CorruptContainer("the file ends within its header")
    return number


def _bytes(file: BinaryIO) -> bytes:
    size = _number(file)
    if not 0 <= size <= HEADER_BYTES_MAX:
        raise CorruptContainer(f"the header claims a value of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise CorruptContainer("the file ends within its header")
    return data


def _schema_of(header: Header) -> AvroSchema:
    try:
        return parse(header.metadata["avro.schema"].decode(), lenient=True)
    except KeyError:
        raise CorruptContainer("the file's header has no avro.schema") from None
    except (InvalidSchema, UnicodeDecodeError) as error:
        raise CorruptContainer(f"the file's schema cannot be read: {error}") from error
