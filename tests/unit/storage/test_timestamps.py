"""Finding records by time."""

from pathlib import Path

import pytest

from headrace.storage.log import Log
from tests.logs import NOW, append, new_log


def found(log: Log, timestamp: int) -> tuple[int, int] | None:
    result = log.offset_for_timestamp(timestamp)
    return None if result is None else (result.timestamp, result.offset)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Ten batches of two records each, a second apart, over several segments."""
    log = new_log(tmp_path, segment_bytes=500, index_interval_bytes=100)
    for number in range(10):
        at = NOW + number * 1000
        append(log, b"x" * 50, b"y" * 50, timestamps=[at, at + 500], leader_epoch=number // 5)
    assert len(log.segments) > 3
    return log


def test_a_time_finds_the_first_record_that_is_not_earlier(log: Log) -> None:
    """LOG-13"""
    assert found(log, 0) == (NOW, 0)
    assert found(log, NOW) == (NOW, 0)
    assert found(log, NOW + 1) == (NOW + 500, 1)
    assert found(log, NOW + 4100) == (NOW + 4500, 9)
    assert found(log, NOW + 9500) == (NOW + 9500, 19)
    assert found(log, NOW + 9501) is None


def test_the_leader_epoch_of_the_record_is_told(log: Log) -> None:
    result = log.offset_for_timestamp(NOW + 5000)
    assert result is not None
    assert result.leader_epoch == 1


def test_records_before_the_start_are_not_found(log: Log) -> None:
    log.delete_records_before(3)
    assert found(log, 0) == (NOW + 1500, 3)


def test_times_that_go_back_and_forth(tmp_path: Path) -> None:
    log = new_log(tmp_path, index_interval_bytes=1)
    for second in (5, 3, 9, 1, 9, 7):
        append(log, timestamps=NOW + second)
    assert found(log, NOW + 4) == (NOW + 5, 0)
    assert found(log, NOW + 6) == (NOW + 9, 2)
    latest = log.max_timestamp()
    assert latest is not None
    assert (latest.timestamp, latest.offset) == (NOW + 9, 2)


def test_compressed_batches_are_looked_into(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, b"a", b"b", b"c", timestamps=[NOW, NOW + 10, NOW + 5], codec=4)
    assert found(log, NOW + 3) == (NOW + 10, 1)
    latest = log.max_timestamp()
    assert latest is not None
    assert latest.offset == 1


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    assert found(log, 0) is None
    assert log.max_timestamp() is None


def test_records_without_timestamps_are_found_by_none(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, timestamps=-1)
    assert found(log, NOW) is None
    assert log.max_timestamp() is None
