"""Limits that all logs share: open files, and memory for indexes."""

from pathlib import Path

from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.resources import Deletions, Resources, unlink_all
from headrace.storage.topic_partition import TopicPartition
from tests.builders.logs import NOW, append, values_of


def test_thousands_of_logs_share_a_few_descriptors(tmp_path: Path) -> None:
    resources = Resources(open_files_max=5)
    logs = [
        Log.create(TopicPartition("t", number), f"{tmp_path}/t-{number}", LogConfig(), resources)
        for number in range(20)
    ]
    for _ in range(2):
        for log in logs:
            append(log, b"value")
    assert len(resources.open_files) == 5
    assert all(values_of(log) == [b"value", b"value"] for log in logs)
    for log in logs:
        log.close()
    assert len(resources.open_files) == 0


def test_indexes_of_sealed_segments_are_loaded_while_there_is_room(tmp_path: Path) -> None:
    resources = Resources(index_bytes_max=300)
    config = LogConfig(segment_bytes=1000, index_interval_bytes=1)
    log = Log.create(TopicPartition("t", 0), f"{tmp_path}/t-0", config, resources)
    for number in range(100):
        append(log, timestamps=NOW + number)
    assert len(log.segments) > 5
    for offset in (*range(100), *range(100)):
        assert log.read(offset, 1, 100).size > 0
    assert resources.indexes.total <= 300
    assert len(values_of(log)) == 100


def test_files_wait_for_their_time_from_the_first_sweep_on(tmp_path: Path) -> None:
    deletions = Deletions()
    deletions.add("slow", 1000)
    assert deletions.due(NOW) == []
    deletions.add("quick", 0)
    assert deletions.due(NOW + 500) == ["quick"]
    assert deletions.due(NOW + 1000) == ["slow"]
    assert len(deletions) == 0


def test_files_and_whole_directories_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "t-0.0123-delete"
    directory.mkdir()
    (directory / "a.log").touch()
    file = tmp_path / "b.log.deleted"
    file.touch()
    unlink_all([str(directory), str(file), str(tmp_path / "not there")])
    assert list(tmp_path.iterdir()) == []
