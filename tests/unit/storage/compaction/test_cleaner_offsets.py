"""The offsets up to which logs are clean, over restarts and topics of the same name."""

from pathlib import Path

import pytest

from headrace.storage.checkpoints import CLEANER_OFFSETS, write_offsets
from headrace.storage.compaction.cleaner_offsets import CleanerOffsets
from headrace.storage.log import Log
from tests.builders.logs import PARTITION, new_log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path)


def test_a_log_that_was_never_cleaned_has_no_offset(log: Log) -> None:
    assert CleanerOffsets().known(log) is None


def test_written_offsets_survive_a_restart(log: Log) -> None:
    """RET-3"""
    offsets = CleanerOffsets()
    offsets.advance(log, 7)
    write_offsets(*offsets.checkpoint(log))
    assert CleanerOffsets().known(log) == 7


def test_a_damaged_file_makes_every_log_dirty(log: Log, tmp_path: Path) -> None:
    (tmp_path / CLEANER_OFFSETS).write_text("damaged")
    assert CleanerOffsets().known(log) is None


def test_a_new_topic_does_not_inherit_the_offset_of_an_old_one(log: Log) -> None:
    offsets = CleanerOffsets()
    offsets.advance(log, 7)
    log.topic_id = bytes(16)
    assert offsets.known(log) is None


def test_offsets_of_deleted_logs_are_removed(log: Log, tmp_path: Path) -> None:
    """A log that is not loaded yet is not gone."""
    unloaded = PARTITION._replace(partition=9)
    write_offsets(str(tmp_path / CLEANER_OFFSETS), {PARTITION: 3, unloaded: 5})
    offsets = CleanerOffsets()
    assert offsets.known(log) == 3
    offsets.forget_all_but([])
    assert offsets.checkpoint(log)[1] == {unloaded: 5}
