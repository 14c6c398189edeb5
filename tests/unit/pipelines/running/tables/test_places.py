"""Places of tables: where the files of a batch are on their way."""

from pathlib import Path

from headrace.lake.commit_log import Token
from headrace.pipelines.running.tables.places import TablePlace


def test_files_left_by_a_crash_are_removed_before_the_next_batch(tmp_path: Path) -> None:
    place = TablePlace(str(tmp_path), "raw.t", 1)
    with place.scratch(Token("w", 1), "merging") as folder:
        pass
    folder.mkdir()
    (folder / "left.parquet").touch()
    with place.scratch(Token("w", 2), "merging") as again:
        assert again == folder
        assert list(again.iterdir()) == []
    assert not folder.exists()


def test_scratch_folders_of_writers_and_purposes_are_separate(tmp_path: Path) -> None:
    place = TablePlace(str(tmp_path), "raw.t", 1)
    with (
        place.scratch(Token("w", 1), "merging") as one,
        place.scratch(Token("w", 1), "keys") as two,
        place.scratch(Token("v", 1), "merging") as three,
    ):
        assert len({one, two, three}) == 3
