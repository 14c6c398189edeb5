"""The codecs of a batch: written, read and rejected bytes."""

import struct
import zlib

import cramjam
import pytest

from headrace.errors import CorruptMessage, UnsupportedCompressionType
from headrace.protocol.compression import Codec, compress, decompress

TEXT = b"In the headrace the water waits for the wheel. " * 4_000
CODECS = list(Codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "text"])
def test_compressed_data_is_restored(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_any_kind_of_buffer_is_taken(codec: Codec) -> None:
    compressed = compress(codec, memoryview(bytearray(TEXT)))
    assert bytes(decompress(codec, memoryview(bytearray(compressed)))) == TEXT


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, -1), (Codec.GZIP, 9), (Codec.LZ4, 1), (Codec.LZ4, 17), (Codec.ZSTD, -5)],
)
def test_kafkas_levels_are_accepted(codec: Codec, level: int) -> None:
    assert bytes(decompress(codec, compress(codec, TEXT, level))) == TEXT


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_is_refused_at_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(10_000_000))
    with pytest.raises(CorruptMessage):
        decompress(codec, bomb, 9_999_999)
    assert len(decompress(codec, bomb, 10_000_000)) == 10_000_000


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_any_is_allocated() -> None:
    with pytest.raises(CorruptMessage):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 20)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("kept", [1, 5, 40, -1])
def test_data_that_ends_too_early_is_corrupt(codec: Codec, kept: int) -> None:
    with pytest.raises(CorruptMessage):
        decompress(codec, compress(codec, TEXT)[:kept])


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_garbage_is_corrupt(codec: Codec) -> None:
    with pytest.raises(CorruptMessage):
        decompress(codec, b"\xfe" * 100)


def test_an_unknown_codec_is_unsupported() -> None:
    with pytest.raises(UnsupportedCompressionType):
        decompress(5, b"")
    with pytest.raises(UnsupportedCompressionType):
        compress(7, b"")


def test_snappy_is_written_in_javas_framing() -> None:
    compressed = compress(Codec.SNAPPY, TEXT)
    assert compressed.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    (length,) = struct.unpack_from(">i", compressed, 16)
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + length])) == TEXT[:32768]


def test_snappy_without_framing_is_read() -> None:
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)))) == TEXT


def test_snappy_streams_that_follow_one_another_are_read() -> None:
    both = compress(Codec.SNAPPY, b"one") + compress(Codec.SNAPPY, b"two")
    assert bytes(decompress(Codec.SNAPPY, both)) == b"onetwo"


@pytest.mark.parametrize("length", [-1, 4, 2**31 - 1])
def test_a_snappy_block_beyond_its_batch_is_corrupt(length: int) -> None:
    header = compress(Codec.SNAPPY, b"")
    with pytest.raises(CorruptMessage):
        decompress(Codec.SNAPPY, header + struct.pack(">i", length) + b"abc")


def test_gzip_members_that_follow_one_another_are_read() -> None:
    both = compress(Codec.GZIP, b"one") + compress(Codec.GZIP, b"two")
    assert bytes(decompress(Codec.GZIP, both)) == b"onetwo"


def test_gzip_with_a_wrong_checksum_is_corrupt() -> None:
    damaged = bytearray(compress(Codec.GZIP, TEXT))
    damaged[-8] ^= 1
    with pytest.raises(CorruptMessage):
        decompress(Codec.GZIP, damaged)
    assert zlib.decompress(compress(Codec.GZIP, TEXT), wbits=31) == TEXT


def test_lz4_blocks_are_independent_because_java_reads_no_others() -> None:
    frame = compress(Codec.LZ4, TEXT)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20


def test_zstd_frames_without_a_content_size_are_read() -> None:
    compressor = cramjam.zstd.Compressor(3)
    compressor.compress(TEXT)
    assert bytes(decompress(Codec.ZSTD, bytes(compressor.finish()))) == TEXT
