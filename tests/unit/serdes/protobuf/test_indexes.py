"""The indexes of a message in Confluent's wire format."""

import pytest

from headrace.serdes.protobuf.indexes import read_indexes, write_indexes


@pytest.mark.parametrize(
    ("indexes", "written"),
    [
        ((0,), b"\x00"),
        ((1,), b"\x02\x02"),
        ((1, 0), b"\x04\x02\x00"),
        ((0, 0), b"\x04\x00\x00"),
        ((300,), b"\x02\xd8\x04"),
    ],
)
def test_indexes_are_written_as_zigzag_numbers(indexes: tuple[int, ...], written: bytes) -> None:
    assert write_indexes(indexes) == written


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"\x00rest", ((0,), 1)),
        (b"\x02\x00rest", ((0,), 2)),
        (b"\x04\x02\x00rest", ((1, 0), 3)),
        (b"", None),
        (b"\x04\x02", None),
        (b"\xff\xff\xff\xff\xff\xff", None),
        (b"\x01", None),
    ],
)
def test_indexes_are_read(body: bytes, found: tuple[tuple[int, ...], int] | None) -> None:
    assert read_indexes(body) == found
