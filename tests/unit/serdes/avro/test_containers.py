"""Container files: readable by others, appended to, split, and rejected when damaged."""

import io
import itertools
from typing import Any

import fastavro
import pytest

from headrace.serdes.avro import blocks
from headrace.serdes.avro.blocks import CODECS, compress_block, decompress_block
from headrace.serdes.avro.containers import MARKER_BYTES, ContainerReader, ContainerWriter
from headrace.serdes.avro.parsing import parse
from headrace.serdes.payload_errors import CorruptContainer, PayloadError, UnfitValue

FASTAVROS_CODECS = ("null", "deflate", "snappy", "bzip2", "xz")
"""Codecs without a further library; Java reads and writes the others."""

ROW = parse('{"type":"record","name":"Row","fields":[{"name":"n","type":"long"}]}')
WIDE = parse(
    '{"type":"record","name":"Row","fields":[{"name":"n","type":"double"},'
    '{"name":"s","type":"string","default":"x"}]}'
)


def rows(count: int, begin: int = 0) -> list[Any]:
    return [{"n": number} for number in range(begin, begin + count)]


def container(values: list[Any], codec: str = "deflate", block_bytes: int = 100) -> io.BytesIO:
    file = io.BytesIO()
    writer = ContainerWriter(file, ROW, codec=codec, block_bytes=block_bytes)
    for value in values:
        writer.write(value)
    writer.flush()
    return file


@pytest.mark.parametrize("codec", CODECS)
def test_written_rows_are_read(codec: str) -> None:
    """SCH-5"""
    assert list(ContainerReader(container(rows(1000), codec))) == rows(1000)


@pytest.mark.parametrize("codec", FASTAVROS_CODECS)
def test_fastavro_reads_our_files(codec: str) -> None:
    """SCH-5"""
    file = container(rows(1000), codec)
    file.seek(0)
    assert list(fastavro.reader(file)) == rows(1000)


@pytest.mark.parametrize("codec", FASTAVROS_CODECS)
def test_we_read_fastavros_files(codec: str) -> None:
    """SCH-5"""
    file = io.BytesIO()
    schema = {"type": "record", "name": "Row", "fields": [{"name": "n", "type": "long"}]}
    fastavro.writer(file, schema, rows(1000), codec=codec)
    assert list(ContainerReader(file)) == rows(1000)


def test_a_file_has_its_schema() -> None:
    """SCH-5"""
    assert ContainerReader(container([])).schema.canonical() == ROW.canonical()


def test_a_reader_may_have_a_schema_of_its_own() -> None:
    """SCH-5, SCH-10"""
    assert list(ContainerReader(container(rows(1)), WIDE)) == [{"n": 0.0, "s": "x"}]


def test_values_are_appended() -> None:
    """SCH-5"""
    file = container(rows(100))
    writer = ContainerWriter.appending(file, ROW)
    writer.write({"n": 100})
    writer.flush()
    assert list(ContainerReader(file)) == rows(101)


def test_a_file_has_one_schema() -> None:
    """SCH-5"""
    with pytest.raises(CorruptContainer, match="another schema"):
        ContainerWriter.appending(container(rows(1)), WIDE)


def test_nothing_is_appended_to_a_block_that_is_cut_off() -> None:
    file = container(rows(100))
    file.truncate(len(file.getvalue()) - 5)
    with pytest.raises(CorruptContainer, match="cut off"):
        ContainerWriter.appending(file)


@pytest.mark.parametrize("step", [1, 7, 100, 1_000_000])
def test_ranges_that_cover_a_file_yield_each_value_once(step: int) -> None:
    """SCH-5"""
    file = container(rows(500), "null")
    edges = [*range(0, len(file.getvalue()), step), len(file.getvalue())]
    reader = ContainerReader(file)
    parts = [list(reader.values(begin, end)) for begin, end in itertools.pairwise(edges)]
    assert list(itertools.chain.from_iterable(parts)) == rows(500)


def test_an_unfit_value_leaves_the_block_as_it_was() -> None:
    file = io.BytesIO()
    writer = ContainerWriter(file, ROW)
    writer.write({"n": 1})
    with pytest.raises(UnfitValue):
        writer.write({"n": "x"})
    writer.flush()
    assert list(ContainerReader(file)) == [{"n": 1}]


def test_an_unknown_codec_is_rejected() -> None:
    with pytest.raises(CorruptContainer, match="use one of null, deflate, snappy, zstandard"):
        ContainerWriter(io.BytesIO(), ROW, codec="lzma")


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_that_is_damaged_anywhere_never_gives_another_error(codec: str) -> None:
    """SCH-5"""
    whole = container(rows(30), codec).getvalue()
    for position in range(len(whole)):
        damaged = whole[:position] + bytes((whole[position] ^ 0x55,)) + whole[position + 1 :]
        for data in (damaged, whole[:position]):
            try:
                list(ContainerReader(io.BytesIO(data)))
            except PayloadError:
                continue


def test_a_block_without_its_marker_is_refused() -> None:
    whole = bytearray(container(rows(30)).getvalue())
    whole[-MARKER_BYTES] ^= 1
    with pytest.raises(CorruptContainer, match="no sync marker ends the block at position"):
        list(ContainerReader(io.BytesIO(whole)))


@pytest.mark.parametrize("data", [b"", b"Obj\x02", b"Obj\x01", b"PAR1 and more"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptContainer):
        ContainerReader(io.BytesIO(data))


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "bzip2", "xz"])
def test_a_block_that_would_fill_the_memory_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES_MAX", 100_000)
    assert decompress_block(codec, compress_block(codec, bytes(100_000))) == bytes(100_000)
    bomb = compress_block(codec, bytes(100_001))
    with pytest.raises(CorruptContainer):
        decompress_block(codec, bomb)
