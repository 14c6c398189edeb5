"""Finding records by time."""

from pathlib import Path

import pytest

from headrace.errors import CorruptMessage
from headrace.protocol.batches import ATTRIBUTES_POSITION, headers, seal
from headrace.protocol.compression import Codec
from headrace.storage.appending import append_as_leader
from headrace.storage.log import Log
from tests.builders.logs import NOW, append, batch_of, new_log, reopened

LENGTH_AT = 8


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


def test_the_leader_epoch_of_the_record_is_returned(log: Log) -> None:
    result = log.offset_for_timestamp(NOW + 5000)
    assert result is not None
    assert result.leader_epoch == 1


def test_records_before_the_start_are_not_found(log: Log) -> None:
    log.delete_records_before(3)
    assert found(log, 0) == (NOW + 1500, 3)


def test_unordered_times_are_found(tmp_path: Path) -> None:
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


def test_records_without_timestamps_are_never_found_by_time(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, timestamps=-1)
    assert found(log, NOW) is None
    assert log.max_timestamp() is None


# Batches that cannot be read


def damage(log: Log, number: int, field: int, value: bytes) -> None:
    """Overwrite bytes of the header of a batch in the first segment."""
    path = Path(log.segments[0].path(".log"))
    content = bytearray(path.read_bytes())
    position = [at for at, _ in headers(content)][number] + field
    content[position : position + len(value)] = value
    path.write_bytes(content)


@pytest.fixture
def row(tmp_path: Path) -> Log:
    """Twelve batches of one record, a second apart, of which the index has some."""
    log = new_log(tmp_path, index_interval_bytes=300)
    for number in range(12):
        append(log, b"x" * 100, timestamps=NOW + number * 1000)
    assert len(log.segments[0].index) > 2
    return log


def test_a_batch_whose_records_cannot_be_read_is_found_by_its_header(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, b"before", timestamps=NOW)
    flagged = batch_of(b"not compressed", b"at all", timestamps=NOW + 1000)
    flagged[ATTRIBUTES_POSITION + 1] |= Codec.GZIP
    seal(flagged)
    append_as_leader(log, flagged, 0, NOW)
    append(log, b"after", timestamps=NOW + 500)
    assert found(log, NOW) == (NOW, 0)
    assert found(log, NOW + 1) == (NOW + 1000, 1)
    latest = log.max_timestamp()
    assert latest is not None
    assert (latest.timestamp, latest.offset) == (NOW + 1000, 2)


@pytest.mark.parametrize("length", [0, 3, 1 << 20])
def test_a_damaged_header_hides_records_up_to_the_next_known_batch(row: Log, length: int) -> None:
    damage(row, 5, LENGTH_AT, length.to_bytes(4, "big"))
    assert found(row, NOW + 4000) == (NOW + 4000, 4)
    later = found(row, NOW + 5000)
    assert later is not None
    assert later[1] in (6, 7, 8)
    assert found(row, NOW + 11_000) == (NOW + 11_000, 11)


@pytest.mark.parametrize("length", [0, 3, 1 << 20])
def test_a_batch_with_a_damaged_length_is_not_served(row: Log, length: int) -> None:
    """LOG-4: neither as data nor as the end of the log."""
    damage(row, 5, LENGTH_AT, length.to_bytes(4, "big"))
    again = reopened(row, clean=True)
    with pytest.raises(CorruptMessage, match="position"):
        again.read(5, 10_000, 12)
    assert again.read(11, 10_000, 12).size > 0
