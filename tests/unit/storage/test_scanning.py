"""Walking over the batches of a file: whole ones only, and errors that name the place."""

from pathlib import Path

import pytest

from headrace.errors import CorruptMessage
from headrace.runtime import files
from headrace.storage.scanning import batches_in, find_boundary, find_offset, headers_in
from tests.builders.logs import append, new_log

SIZES = (10, 70_000, 10, 2_000_000, 10)


class Batches:
    """A file of batches, small ones and some larger than what is read at a time."""

    def __init__(self, directory: Path) -> None:
        log = new_log(directory, segment_bytes=1 << 30, max_message_bytes=1 << 30)
        for size in SIZES:
            append(log, b"x" * size)
        self.path = Path(log.segments[0].path(".log"))
        self.file = files.open_existing(str(self.path))
        self.size = log.segments[0].size
        self.starts = [position for position, _ in headers_in(self.file.fd, 0, self.size)]


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    return Batches(tmp_path)


def test_headers_and_whole_batches_are_found_at_the_same_places(batches: Batches) -> None:
    found = list(batches_in(batches.file.fd, 0, batches.size))
    assert [position for position, _, _ in found] == batches.starts
    assert [header.base_offset for _, header, _ in found] == list(range(len(SIZES)))
    assert all(header.size == len(batch) for _, header, batch in found)


@pytest.mark.parametrize("offset", range(len(SIZES)))
def test_an_offset_is_found_from_the_start(batches: Batches, offset: int) -> None:
    assert find_offset(batches.file.fd, 0, batches.size, offset) == batches.starts[offset]


def test_an_offset_beyond_the_last_is_at_the_end(batches: Batches) -> None:
    assert find_offset(batches.file.fd, 0, batches.size, 99) == batches.size


def test_a_slice_ends_where_a_batch_ends(batches: Batches) -> None:
    first, third = batches.starts[1], batches.starts[3]
    assert find_boundary(batches.file.fd, 0, batches.size, third + 5) == (first, third)
    assert find_boundary(batches.file.fd, 0, batches.size, 5) == (first, 0)


@pytest.mark.parametrize("walk", [headers_in, batches_in])
@pytest.mark.parametrize("number", [2, 4])
def test_an_error_names_the_place_in_the_file(batches: Batches, walk: object, number: int) -> None:
    """Also far behind the first bytes that were read."""
    content = bytearray(batches.path.read_bytes())
    content[batches.starts[number] + 16] = 77  # The magic.
    batches.path.write_bytes(content)
    assert callable(walk)
    with pytest.raises(CorruptMessage, match=f"position {batches.starts[number]} has magic 77"):
        list(walk(batches.file.fd, 0, batches.size))


def test_an_incomplete_batch_is_corrupt(batches: Batches) -> None:
    with pytest.raises(CorruptMessage, match="cut off"):
        list(headers_in(batches.file.fd, 0, batches.size - 1))
