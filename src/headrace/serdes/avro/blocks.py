"""The codecs of an Avro container file's blocks. Decompression is bounded."""

import bz2
import lzma
import struct
import zlib
from typing import Final

from headrace.errors import CorruptMessage
from headrace.protocol.compression import Codec, compress, decompress
from headrace.serdes.payload_errors import CorruptContainer

CODECS: Final = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")

BLOCK_BYTES_MAX: Final = 64 << 20
"""The size limit of a block, a thousand times the usual size."""

_XZ_MEMORY_MAX: Final = 128 << 20
"""The memory limit of xz, twice the need of its highest level."""
_RAW_DEFLATE: Final = -15
_CHECKSUM: Final = struct.Struct(">I")


def compress_block(codec: str, data: bytes) -> bytes:
    match codec:
        case "deflate":
            deflater = zlib.compressobj(wbits=_RAW_DEFLATE)
            return deflater.compress(data) + deflater.flush()
        case "snappy":
            from cramjam import snappy

            return bytes(snappy.compress_raw(data)) + _CHECKSUM.pack(zlib.crc32(data))
        case "zstandard":
            return compress(Codec.ZSTD, data)
        case "bzip2":
            return bz2.compress(data)
        case "xz":
            return lzma.compress(data)
    return data


def decompress_block(codec: str, data: bytes) -> bytes:
    """Decompress a block; raise `CorruptContainer` if it is damaged."""
    try:
        match codec:
            case "deflate":
                return _inflate(data)
            case "snappy":
                return _unsnap(data)
            case "zstandard":
                return bytes(decompress(Codec.ZSTD, data, BLOCK_BYTES_MAX))
            case "bzip2":
                return _bounded(bz2.BZ2Decompressor(), data)
            case "xz":
                return _bounded(
                    lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_MAX), data
                )
    except (CorruptMessage, zlib.error, lzma.LZMAError, OSError) as error:
        raise CorruptContainer(f"a block is damaged: {error}") from error
    return data


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=_RAW_DEFLATE)
    plain = inflater.decompress(data, BLOCK_BYTES_MAX)
    if inflater.unconsumed_tail:
        raise CorruptContainer(f"a block holds more than {BLOCK_BYTES_MAX} bytes")
    if not inflater.eof:
        raise CorruptContainer("a block is damaged: its compressed bytes end too early")
    return plain


def _bounded(decompressor: bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes) -> bytes:
    plain = decompressor.decompress(data, BLOCK_BYTES_MAX)
    if not decompressor.eof:
        if decompressor.needs_input:
            raise CorruptContainer("a block is damaged: its compressed bytes end too early")
        raise CorruptContainer(f"a block holds more than {BLOCK_BYTES_MAX} bytes")
    return plain


def _unsnap(data: bytes) -> bytes:
    body, checksum = data[:-4], data[-4:]
    plain = bytes(decompress(Codec.SNAPPY, body, BLOCK_BYTES_MAX))
    if checksum != _CHECKSUM.pack(zlib.crc32(plain)):
        raise CorruptContainer("a block is damaged: its checksum differs")
    return plain
