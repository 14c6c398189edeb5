"""Blocks of container files survive every codec, within a size limit."""

import zlib

import pytest

from headrace.serdes.avro import blocks
from headrace.serdes.avro.blocks import CODECS, compress_block, decompress_block
from headrace.serdes.payload_errors import CorruptContainer


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"abc" * 1000])
def test_a_compressed_block_is_restored(codec: str, data: bytes) -> None:
    assert decompress_block(codec, compress_block(codec, data)) == data


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard"])
def test_a_small_block_that_expands_too_much_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES_MAX", 1 << 16)
    with pytest.raises(CorruptContainer):
        decompress_block(codec, compress_block(codec, bytes(1 << 20)))


def test_a_wrong_checksum_of_snappy_is_refused() -> None:
    block = compress_block("snappy", b"abc")
    with pytest.raises(CorruptContainer, match="checksum"):
        decompress_block("snappy", block[:-4] + zlib.crc32(b"abd").to_bytes(4, "big"))
