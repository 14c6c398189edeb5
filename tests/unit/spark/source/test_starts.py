"""Starts next to a checkpoint: all or nothing, and damage is an error."""

from pathlib import Path

import pytest

from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import random_uuid
from headrace.spark.source.errors import InvalidOption, SourceError
from headrace.spark.source.starts import Starts, load, save, starts_path


def test_starts_come_back_as_they_were_kept(tmp_path: Path) -> None:
    path = starts_path(str(tmp_path / "new" / "folder"))
    positions = {TopicPartition("t", 0): 3, TopicPartition("t", 10): 4}
    for remade in (frozenset[str](), frozenset({"t"})):
        starts = Starts(positions, {"t": random_uuid()}, remade)
        save(path, starts)
        assert load(path) == starts
    assert [found.name for found in path.parent.iterdir()] == ["starts.json"]


def test_a_missing_file_has_no_starts(tmp_path: Path) -> None:
    assert load(starts_path(f"file://{tmp_path}")) is None


@pytest.mark.parametrize(
    "content", ["", "{}", '{"version": 9}', "[1]", '{"version": 1, "offsets": 3}']
)
def test_a_damaged_file_is_reported_with_its_name(tmp_path: Path, content: str) -> None:
    path = starts_path(str(tmp_path))
    path.write_text(content)
    with pytest.raises(SourceError, match=r"starts\.json"):
        load(path)


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot be written"):
        save(starts_path(str(tmp_path / "file")), Starts({}))


def test_a_location_that_is_not_a_local_directory_is_refused() -> None:
    with pytest.raises(InvalidOption, match="startsLocation"):
        starts_path("s3://bucket/starts")
