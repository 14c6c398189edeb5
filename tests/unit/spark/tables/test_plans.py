"""Which files a micro-batch of a table's stream reads."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.lake.commit_log import AddedFile
from headrace.lake.errors import TableRewritten
from headrace.spark.tables.plans import Position, advanced, bins, planned


class Commits:
    """A table whose commit n has so many files."""

    name = "raw.orders"

    def __init__(self, *counts: int) -> None:
        self.files = [
            AddedFile(version, f"{version:03}-{number}", {}, 1, 10)
            for version, count in enumerate(counts)
            for number in range(count)
        ]

    @property
    def version(self) -> int:
        return max((file.version for file in self.files), default=-1)

    def snapshot_files(self, version: int, *, with_versions: bool = True) -> list[AddedFile]:
        return [file for file in self.files if file.version <= version]

    def files_as_arrived(self, version: int) -> list[AddedFile]:
        return self.snapshot_files(version)

    def added(self, after_version: int, to_version: int) -> list[AddedFile]:
        return [file for file in self.files if after_version < file.version <= to_version]


def at(version: int, snapshot: int | None = None, files: int = 0) -> Position:
    return Position("raw.orders", "id", version, snapshot, files)


def test_a_stream_begins_with_the_newest_version_whole() -> None:
    table = Commits(0, 2, 1)
    end = advanced(table, at(-1), 2, None)
    assert end == at(2)
    assert planned(table, at(-1), end) == table.files


def test_a_snapshot_that_was_begun_is_finished_before_newer_commits() -> None:
    table = Commits(0, 2, 1)
    first = advanced(table, at(-1), 2, 2)
    assert first == at(-1, snapshot=2, files=2)
    table = Commits(0, 2, 1, 5)
    second = advanced(table, first, 3, 2)
    assert second == at(2)
    assert planned(table, first, second) == table.files[2:3]
    assert planned(table, at(-1), first) == table.files[:2]


def test_commits_are_read_whole_and_at_least_one() -> None:
    table = Commits(0, 3, 1, 1, 1)
    assert advanced(table, at(0), 4, 2) == at(1)
    assert advanced(table, at(1), 4, 2) == at(3)
    assert advanced(table, at(1), 4, None) == at(4)


def test_commits_without_rows_are_not_worth_a_batch() -> None:
    assert advanced(Commits(0, 1), at(1), 30, None) == at(1)
    assert advanced(Commits(0, 1, 0, 0, 1), at(1), 30, None) == at(4)


def test_an_offset_advances_before_the_log_is_deleted() -> None:
    assert advanced(Commits(0, 1), at(1), 500, None).version > 300


def test_an_empty_table_does_not_advance() -> None:
    assert advanced(Commits(), at(-1), -1, None) == at(-1)


@pytest.mark.parametrize("position", [at(7), at(-1, snapshot=9, files=3)])
def test_positions_come_back_from_checkpoints(position: Position) -> None:
    assert Position.of(position.document(), "raw.orders", "id") == position


def test_the_checkpoint_of_another_table_is_refused() -> None:
    with pytest.raises(TableRewritten, match="was rebuilt"):
        Position.of(at(7).document(), "raw.orders", "another id")


def test_small_files_share_a_task_and_large_ones_have_their_own() -> None:
    assert list(bins([5, 4, 20, 3, 3, 3], 10, int)) == [(5, 4), (20,), (3, 3, 3)]
    assert list(bins([], 10, int)) == []


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    limits=st.lists(st.none() | st.integers(1, 5), min_size=1, max_size=5),
    start=st.integers(-1, 3),
)
def test_every_file_is_read_once_under_any_limits(
    counts: Sequence[int], limits: Sequence[int | None], start: int
) -> None:
    """Commits arrive while the stream reads, and the limits change between batches."""
    position, read = at(min(start, len(counts) - 1)), []
    first = position.version
    for step in range(200):
        table = Commits(*counts[: step + 1])
        newest = min(step, len(counts) - 1)
        if newest < position.version:
            continue
        end = advanced(table, position, newest, limits[step % len(limits)])
        read += planned(table, position, end)
        position = end
    assert sorted(file.path for file in read) == [
        file.path for file in Commits(*counts).files if file.version > first
    ]
