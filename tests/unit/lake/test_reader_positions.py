"""A log is kept for readers that follow the table, and cleaned otherwise."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import CommitLog
from headrace.lake.errors import VersionGone
from headrace.lake.reader_positions import (
    is_old_log_needed,
    reader_position,
    record_reader_position,
)
from headrace.lake.tables import Table
from tests.builders.lakes import numbers

DAY_S = 86_400
NOW = 2_000_000_000.0
NOW_MS = int(NOW * 1000)
KEPT = {"delta.logRetentionDuration": "interval 7 days"}


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    """Ten versions, one for each day; the newest is of this moment."""
    log = CommitLog(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    for version in range(10):
        log.write(version, [])
        at = NOW - (9 - version) * DAY_S
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (at, at))
    return log


@pytest.mark.parametrize(
    ("read", "is_needed"),
    [(None, False), (9, False), (12, False), (5, False), (1, False), (0, True), (-1, True)],
    ids=["nobody", "all", "of a table before", "in time", "just so", "late", "first time"],
)
def test_an_idle_reader_needs_entries_beyond_their_retention(
    log: CommitLog, read: int | None, is_needed: bool
) -> None:
    record_reader_position(log.place, read)
    assert is_old_log_needed(log, 9, KEPT, NOW_MS) is is_needed


@pytest.mark.parametrize(
    ("said", "is_needed"),
    [("interval 12 hours", True), ("INTERVAL 1 WEEK", False), ("a while", True), (None, False)],
)
def test_the_retention_of_the_log_is_a_property_of_the_table(
    log: CommitLog, said: str | None, is_needed: bool
) -> None:
    record_reader_position(log.place, 7)
    properties = {} if said is None else {"delta.logRetentionDuration": said}
    assert is_old_log_needed(log, 9, properties, NOW_MS) is is_needed


@pytest.mark.parametrize(("read", "is_needed"), [(1, False), (-1, True)])
def test_a_reader_behind_the_whole_log_does_not_retain_it(
    log: CommitLog, read: int, is_needed: bool
) -> None:
    for version in range(3):
        (log.place / "_delta_log" / f"{version:020}.json").unlink()
    record_reader_position(log.place, read)
    assert is_old_log_needed(log, 9, KEPT, NOW_MS) is is_needed


def test_a_position_is_removed_and_a_torn_one_retains_the_whole_log(tmp_path: Path) -> None:
    record_reader_position(tmp_path, 3)
    assert reader_position(tmp_path) == 3
    record_reader_position(tmp_path, None)
    assert reader_position(tmp_path) is None
    (tmp_path / "_followed").write_text("")
    assert reader_position(tmp_path) == -1


def aged(table: Table) -> None:
    """Let a week and a day pass for what the log has."""
    at = time.time() - 8 * DAY_S
    for path in (table.place / "_delta_log").iterdir():
        os.utime(path, (at, at))


def test_a_flow_that_was_idle_for_more_than_a_week_continues(tmp_path: Path) -> None:
    """The same commits clean the log once no reader needs old entries."""
    table = Lake(tmp_path).create(
        "raw.orders", pa.schema([("id", pa.int64()), ("name", pa.string())])
    )
    for number in range(98):
        numbers(table, number)
    aged(table)
    table.record_reader_position(80)
    assert table.is_old_log_needed()
    numbers(table, 98)
    assert len(table.added(80, table.version)) == 19
    table.record_reader_position(table.version)
    aged(table)
    for number in range(99, 199):
        numbers(table, number)
    table.vacuum()
    assert reader_position(table.place) == 99
    with pytest.raises(VersionGone):
        table.added(80, table.version)
