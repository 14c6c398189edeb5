"""Recovery of logs from the files of a stop or a crash."""

import shutil
from pathlib import Path

import pytest

from headrace.storage.checkpoints import PARTITION_METADATA
from headrace.storage.log import Log
from headrace.storage.recovery import load_log
from headrace.storage.segment import Segment
from tests.builders.failing_disk import killed_after
from tests.builders.logs import (
    EVERYTHING,
    NOW,
    PARTITION,
    TOPIC_ID,
    all_records,
    append,
    new_log,
    reopened,
    sequenced,
    values_of,
)

SUFFIXES = (".log", ".index", ".timeindex")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Three segments of two records each."""
    log = new_log(tmp_path, segment_bytes=400, index_interval_bytes=100)
    for number in range(6):
        append(log, b"%d" % number * 100, timestamps=NOW + number)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    return log


def path_of(log: Log, base_offset: int, extension: str) -> Path:
    return Path(log.directory) / f"{base_offset:020d}{extension}"


def names_in(log: Log) -> set[str]:
    return {path.name for path in Path(log.directory).iterdir()}


def offsets_after_start(log: Log, *, clean: bool = False, recovery_point: int = 0) -> list[int]:
    again = reopened(log, clean=clean, recovery_point=recovery_point)
    again.advance_high_watermark(again.log_end_offset)
    return [record.offset for record in all_records(again)]


# Torn and damaged logs


def test_a_torn_tail_is_cut_off(log: Log) -> None:
    path = path_of(log, 4, ".log")
    whole = path.stat().st_size // 2
    path.write_bytes(path.read_bytes()[:-1])
    assert offsets_after_start(log) == [0, 1, 2, 3, 4]
    assert path.stat().st_size == whole


def test_nothing_after_a_damaged_batch_is_served(log: Log) -> None:
    path = path_of(log, 2, ".log")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 - 1] ^= 1  # The last byte of the first batch.
    path.write_bytes(content)
    assert offsets_after_start(log) == [0, 1]
    assert not path_of(log, 4, ".log").exists()
    assert append(reopened(log), b"next").base_offset == 2


def test_a_damaged_batch_is_logged_with_its_position(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_of(log, 2, ".log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # The last byte of the second batch.
    path.write_bytes(content)
    reopened(log)
    errors = [vars(record).get("error", "") for record in caplog.records]
    assert any(
        f"the batch at position {len(content) // 2} carries CRC" in error for error in errors
    )


def test_segments_before_the_recovery_point_are_not_read_again(log: Log) -> None:
    path = path_of(log, 0, ".log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    log.segments[0].seal()
    again = reopened(log, recovery_point=2)
    assert again.log_end_offset == 6


def test_offsets_that_do_not_ascend_end_the_log(log: Log) -> None:
    path = path_of(log, 4, ".log")
    content = path.read_bytes()
    path.write_bytes(content + content)
    assert offsets_after_start(log) == [0, 1, 2, 3, 4, 5]


def test_a_preallocated_tail_is_cut_off(log: Log) -> None:
    with path_of(log, 4, ".log").open("ab") as file:
        file.write(bytes(1000))
    assert offsets_after_start(log) == [0, 1, 2, 3, 4, 5]
    assert append(reopened(log), b"next").base_offset == 6


def test_preallocated_indexes_of_a_crashed_broker_are_rebuilt(log: Log) -> None:
    """Kafka makes the indexes of an active segment too large and trims them when it can."""
    for extension in (".index", ".timeindex"):
        path_of(log, 4, extension).write_bytes(bytes(12 * 1000))
    again = reopened(log)
    again.close()
    assert path_of(log, 4, ".index").stat().st_size == 8
    assert path_of(log, 4, ".timeindex").stat().st_size % 12 == 0


# Files that can be rebuilt


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("extension", [".index", ".timeindex", ".snapshot"])
def test_missing_files_are_rebuilt(log: Log, extension: str, clean: bool) -> None:
    log.close()
    for path in Path(log.directory).glob(f"*{extension}"):
        path.unlink()
    again = load_log(PARTITION, log.directory, log.config, clean=clean, recovery_point=6)
    again.advance_high_watermark(6)
    assert [record.offset for record in all_records(again)] == [0, 1, 2, 3, 4, 5]
    found = again.offset_for_timestamp(NOW + 3)
    assert found is not None
    assert found.offset == 3


def test_indexes_without_a_log_are_removed(log: Log) -> None:
    path_of(log, 99, ".index").touch()
    path_of(log, 99, ".timeindex").touch()
    assert offsets_after_start(log) == [0, 1, 2, 3, 4, 5]
    assert not any(name.startswith(f"{99:020d}") for name in names_in(log))


def test_epochs_are_read_from_the_batches_if_the_file_is_lost(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, leader_epoch=1)
    append(log, leader_epoch=4)
    (Path(log.directory) / "leader-epoch-checkpoint").unlink()
    entries = reopened(log).leader_epochs.entries
    assert [(entry.epoch, entry.start_offset) for entry in entries] == [(1, 0), (4, 1)]


def test_epochs_beyond_the_end_are_dropped(log: Log) -> None:
    log.begin_epoch(7)
    again = reopened(log)
    assert again.leader_epochs.latest_epoch == 0


def test_snapshots_of_no_segment_are_removed_but_the_newest(log: Log) -> None:
    sequenced(log, 0)
    log = reopened(log, clean=True)
    sequenced(log, 1)
    log = reopened(log, clean=True)
    log = reopened(log, clean=True)
    snapshots = sorted(name for name in names_in(log) if name.endswith(".snapshot"))
    bases = {f"{segment.base_offset:020d}.snapshot" for segment in log.segments[1:]}
    assert set(snapshots) == bases | {f"{log.log_end_offset:020d}.snapshot"}


def test_recovery_leaves_a_snapshot_for_each_segment(log: Log) -> None:
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    reopened(log)
    assert {f"{base:020d}.snapshot" for base in (2, 4)} <= names_in(log)


# The start of the log


def test_a_start_within_a_segment_comes_from_the_checkpoint(log: Log) -> None:
    log.delete_records_before(3)
    again = reopened(log, log_start_offset=3)
    assert [record.offset for record in all_records(again)] == [3, 4, 5]


def test_a_log_that_ends_before_its_start_restarts_empty(log: Log) -> None:
    again = reopened(log, log_start_offset=50)
    assert (again.log_start_offset, again.log_end_offset) == (50, 50)
    assert append(again).base_offset == 50


def test_an_empty_directory_becomes_an_empty_log(log: Log) -> None:
    shutil.rmtree(log.directory)
    Path(log.directory).mkdir()
    again = load_log(PARTITION, log.directory, log.config, clean=False)
    assert (again.log_end_offset, again.topic_id) == (0, bytes(16))


def test_the_topic_is_read_from_the_directory(log: Log) -> None:
    assert reopened(log).topic_id == TOPIC_ID
    (Path(log.directory) / PARTITION_METADATA).write_text("version: 0\ntopic")
    assert reopened(log).topic_id == bytes(16)


def test_the_high_watermark_is_within_the_log(log: Log) -> None:
    assert reopened(log, high_watermark=99).high_watermark == 6
    assert reopened(log, high_watermark=3).high_watermark == 3


# Compaction and deletion that were interrupted


def compacted(log: Log, old: int, suffix: str) -> Segment:
    """A segment that keeps only the last record of the first so many segments."""
    last_offset = log.segments[old].base_offset - 1
    kept = log.read(last_offset, 1, EVERYTHING).read()
    segment = Segment.create(log.directory, 0, log.resources, suffix=suffix)
    segment.note_batch(segment.write(kept), len(kept), last_offset, NOW)
    segment.sync()
    return segment


def test_a_compaction_that_was_not_finished_is_given_up(log: Log) -> None:
    compacted(log, 2, ".cleaned")
    assert offsets_after_start(log) == [0, 1, 2, 3, 4, 5]
    assert not any(name.endswith(".cleaned") for name in names_in(log))


def test_a_compaction_that_was_finished_takes_its_place(log: Log) -> None:
    compacted(log, 2, ".swap")
    assert offsets_after_start(log) == [3, 4, 5]
    assert not path_of(log, 2, ".log").exists()
    assert not any(name.endswith(".swap") for name in names_in(log))


def test_several_new_segments_are_swapped_all_or_none(log: Log) -> None:
    """They are renamed from the last to the first, so the first is the one that is missing."""
    compacted(log, 1, ".cleaned")
    for extension in SUFFIXES:
        shutil.copy(path_of(log, 2, extension), path_of(log, 2, extension + ".swap"))
    assert offsets_after_start(log) == [0, 1, 2, 3, 4, 5]
    assert not any(name.endswith((".swap", ".cleaned")) for name in names_in(log))


def test_a_swap_that_had_begun_is_finished(log: Log) -> None:
    """The old files are set aside, the index has its name, the log has not."""
    segment = compacted(log, 2, ".swap")
    for base_offset in (0, 2):
        for extension in SUFFIXES:
            path = path_of(log, base_offset, extension)
            path.rename(f"{path}.deleted")
    Path(segment.path(".index")).rename(path_of(log, 0, ".index"))
    assert offsets_after_start(log) == [3, 4, 5]
    assert not any(name.endswith((".swap", ".deleted")) for name in names_in(log))


@pytest.mark.parametrize("changes", range(0, 40, 1))
def test_a_death_during_a_swap_leaves_the_old_segments_or_the_new(log: Log, changes: int) -> None:
    """Two new segments for the first four of seven; each keeps its last record."""
    for number in range(6, 13):
        append(log, b"%d" % number * 100, timestamps=NOW + number)
    old = log.segments[:4]
    new = []
    for base_offset, kept_offset in ((0, 3), (4, 7)):
        kept = log.read(kept_offset, 1, EVERYTHING).read()
        segment = Segment.create(log.directory, base_offset, log.resources, suffix=".cleaned")
        segment.note_batch(segment.write(kept), len(kept), kept_offset, NOW)
        segment.sync()
        new.append(segment)
    with killed_after(changes):
        log.replace_segments(old, new)
    after = offsets_after_start(log)
    assert after in ([*range(13)], [3, 7, *range(8, 13)])
    assert not any(name.endswith((".swap", ".cleaned")) for name in names_in(log))
    assert changes < 39 or after[0] == 3, "the swap takes fewer changes"


def test_deleted_files_go_and_snapshots_of_the_metadata_log_stay(log: Log) -> None:
    path_of(log, 0, ".log.deleted").touch()
    snapshot = Path(log.directory) / "00000000000000000005-0000000001.checkpoint.deleted"
    snapshot.touch()
    assert offsets_after_start(log) == [0, 1, 2, 3, 4, 5]
    assert not path_of(log, 0, ".log.deleted").exists()
    assert snapshot.exists()


# Trust


def test_a_clean_stop_is_trusted_only_where_its_marks_agree(log: Log) -> None:
    assert reopened(log, clean=True, recovery_point=5).log_end_offset == 6


def test_a_damaged_transaction_index_makes_a_log_be_recovered(log: Log) -> None:
    log.close()
    path_of(log, 2, ".txnindex").write_bytes(b"damaged")
    again = load_log(PARTITION, log.directory, log.config, clean=True, recovery_point=6)
    again.advance_high_watermark(6)
    assert again.aborted_transactions(0, 6) == []
    assert len(values_of(again)) == 6


def test_an_old_damaged_batch_costs_producers_and_no_records(log: Log) -> None:
    """The log is not truncated before the recovery point; unreadable producers are forgotten."""
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    path_of(log, 0, ".log").write_bytes(bytes(log.segments[0].size))
    again = reopened(log, recovery_point=4)
    assert again.log_end_offset == 6
    assert append(again, producer_id=7, producer_epoch=0, base_sequence=9).base_offset == 6


def test_a_time_index_of_zeros_does_not_make_records_old(log: Log) -> None:
    """A power cut may leave zeros in a file, and retention would delete what looks so old."""
    log.close()
    size = path_of(log, 0, ".timeindex").stat().st_size
    path_of(log, 0, ".timeindex").write_bytes(bytes(size))
    again = load_log(PARTITION, log.directory, log.config, clean=False, recovery_point=6)
    assert again.segments[0].largest_timestamp() == NOW + 1
