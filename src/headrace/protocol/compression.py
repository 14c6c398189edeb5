"""The four codecs of a record batch, in the framings of Kafka's clients.

Decompression is bounded: a batch of a kilobyte can claim to hold terabytes, so no more than
`size_max` is ever allocated, and invalid compressed bytes raise `CorruptMessage`. gzip needs only
the standard library; the others come from cramjam, which is loaded at the first use because most
brokers never need it.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from mmap import mmap
from typing import Final

from headrace.errors import CorruptMessage, UnsupportedCompressionType

Buffer = bytes | bytearray | memoryview

DECOMPRESSED_SIZE_MAX: Final = 1 << 26
"""The maximum size of a batch: far above any client's batch, harmless for the machine."""


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES: Final = {codec.name.lower(): codec for codec in Codec}
"""Codecs by the words of `compression.type`; `none` is spelled `uncompressed` in a topic."""

_GZIP_WINDOW = 31
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_SIZE = 32 * 1024
_LZ4_KAFKA_DEFAULT_LEVEL = 9
_ZSTD_DEFAULT_LEVEL = 3
_LENGTH = struct.Struct(">i")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress as Kafka's own producer would; `level` is Kafka's level, None its default."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            deflater = zlib.compressobj(-1 if level is None else level, wbits=_GZIP_WINDOW)
            return deflater.compress(data) + deflater.flush()
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            return _compress_lz4(data, level)
        case Codec.ZSTD:
            from cramjam import zstd

            return bytes(zstd.compress(data, _ZSTD_DEFAULT_LEVEL if level is None else level))
    raise UnsupportedCompressionType(f"there is no compression codec {codec}; use 0 to 4")


def decompress(codec: int, data: Buffer, size_max: int = DECOMPRESSED_SIZE_MAX) -> memoryview:
    """The plain bytes, or `CorruptMessage` if they are malformed or more than `size_max`."""
    match codec:
        case Codec.NONE:
            return memoryview(data)
        case Codec.GZIP:
            return memoryview(_decompress_gzip(data, size_max))
        case Codec.SNAPPY:
            return memoryview(_decompress_snappy(memoryview(data), size_max))
        case Codec.LZ4:
            from cramjam import lz4

            return _decompress_into(lz4.decompress_into, data, size_max)
        case Codec.ZSTD:
            from cramjam import zstd

            return _decompress_into(zstd.decompress_into, data, size_max)
    raise UnsupportedCompressionType(f"there is no compression codec {codec}; use 0 to 4")


def _compress_xerial(data: Buffer) -> bytes:
    """Java's snappy stream: a header, then blocks of raw snappy with their lengths."""
    from cramjam import snappy

    out = bytearray(_XERIAL_HEADER)
    view = memoryview(data)
    for position in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = snappy.compress_raw(view[position : position + _XERIAL_BLOCK_SIZE])
        out += _LENGTH.pack(len(block))
        out += memoryview(block)
    return bytes(out)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    """An lz4 frame of independent blocks: Kafka's reader refuses linked ones.

    Kafka's level 9 is its default and means the fast compressor, not the ninth level of
    the slow one; cramjam's own default would be the slow one, 15 times slower.
    """
    from cramjam import lz4

    fast = level is None or level == _LZ4_KAFKA_DEFAULT_LEVEL
    compressor = lz4.Compressor(1 if fast else max(3, min(level or 0, 12)), False, False)
    compressor.compress(bytes(data))  # It takes no other kind of buffer.
    return bytes(compressor.finish())


def _decompress_gzip(data: Buffer, size_max: int) -> bytes:
    """One gzip member or several in a row, as Java's reader takes them."""
    out = b""
    rest: Buffer = data
    while True:
        inflater = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            out += inflater.decompress(rest, size_max - len(out) + 1)
        except zlib.error as error:
            raise CorruptMessage(f"the gzip data of a batch is damaged: {error}") from error
        if len(out) > size_max:
            raise _too_large(size_max)
        if not inflater.eof:
            raise CorruptMessage("the gzip data of a batch ends too early")
        rest = inflater.unused_data
        if not rest:
            return out


def _decompress_snappy(data: memoryview, size_max: int) -> bytes:
    """Raw snappy, or the framing of Java's snappy stream, which its first bytes give away."""
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, size_max)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # Streams may follow one another.
            continue
        start = position + _LENGTH.size
        if start > len(data):
            raise CorruptMessage("the snappy data of a batch ends inside a block length")
        (length,) = _LENGTH.unpack_from(data, position)
        position = start + length
        if length < 0 or position > len(data):
            raise CorruptMessage(f"a snappy block claims {length} bytes beyond its batch")
        out += _decompress_snappy_block(data[start:position], size_max - len(out))
    return bytes(out)


def _decompress_snappy_block(block: memoryview, size_max: int) -> bytes:
    from cramjam import DecompressionError, snappy

    try:
        if snappy.decompress_raw_len(block) > size_max:
            raise _too_large(size_max)
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise CorruptMessage(f"the snappy data of a batch is damaged: {error}") from error


def _decompress_into(
    decompress_into: Callable[[Buffer, mmap], int], data: Buffer, size_max: int
) -> memoryview:
    """Decompress into a buffer of `size_max` bytes that costs only the pages written.

    Neither format must state its uncompressed size, and trying ever larger buffers would repeat
    the work; an anonymous mapping is a cheap large buffer.
    """
    from cramjam import DecompressionError

    room = mmap(-1, size_max)
    try:
        size = decompress_into(data, room)
    except DecompressionError as error:
        raise CorruptMessage(
            f"the compressed data of a batch is damaged or holds more than {size_max} bytes: "
            f"{error}"
        ) from error
    return memoryview(room)[:size]


def _too_large(size_max: int) -> CorruptMessage:
    return CorruptMessage(f"a batch decompresses to more than {size_max} bytes")
