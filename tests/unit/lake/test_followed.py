"""A log that is kept for those who follow the table, and cleaned for all others."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commits import CommitLog
from headrace.lake.errors import VersionGone
from headrace.lake.followed import followed_up_to, is_old_log_needed, note_followed
from headrace.lake.tables import Table
from tests.lakes import numbers

DAY_S = 86_400
NOW = 2_000_000_000.0
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
def test_old_entries_are_needed_by_who_stands_still_for_longer_than_they_are_kept(
    log: CommitLog, read: int | None, is_needed: bool
) -> None:
    note_followed(log.place, read)
    assert is_old_log_needed(log, 9, KEPT, NOW) is is_needed


@pytest.mark.parametrize(
    ("said", "is_needed"),
    [("interval 12 hours", True), ("INTERVAL 1 WEEK", False), ("a while", True), (None, False)],
)
def test_a_table_says_itself_for_how_long_it_keeps_its_log(
    log: CommitLog, said: str | None, is_needed: bool
) -> None:
    note_followed(log.place, 7)
    properties = {} if said is None else {"delta.logRetentionDuration": said}
    assert is_old_log_needed(log, 9, properties, NOW) is is_needed


@pytest.mark.parametrize(("read", "is_needed"), [(1, False), (-1, True)])
def test_who_is_behind_the_whole_log_holds_nothing_up(
    log: CommitLog, read: int, is_needed: bool
) -> None:
    for version in range(3):
        (log.place / "_delta_log" / f"{version:020}.json").unlink()
    note_followed(log.place, read)
    assert is_old_log_needed(log, 9, KEPT, NOW) is is_needed


def test_a_note_is_taken_back_and_a_torn_one_keeps_all(tmp_path: Path) -> None:
    note_followed(tmp_path, 3)
    assert followed_up_to(tmp_path) == 3
    note_followed(tmp_path, None)
    assert followed_up_to(tmp_path) is None
    (tmp_path / "_followed").write_text("")
    assert followed_up_to(tmp_path) == -1


def aged(table: Table) -> None:
    """Let a week and a day pass for what the log has."""
    at = time.time() - 8 * DAY_S
    for path in (table.place / "_delta_log").iterdir():
        os.utime(path, (at, at))


def test_a_flow_that_stood_still_for_more_than_a_week_goes_on(tmp_path: Path) -> None:
    """The same commits clean the log, once nobody has to read what is old."""
    table = Lake(tmp_path).create(
        "raw.orders", pa.schema([("id", pa.int64()), ("name", pa.string())])
    )
    for number in range(98):
        numbers(table, number)
    aged(table)
    table.note_followed(80)
    assert table.is_old_log_needed()
    numbers(table, 98)
    assert len(table.added(80, table.version)) == 19
    table.note_followed(table.version)
    aged(table)
    for number in range(99, 199):
        numbers(table, number)
    table.vacuum()
    assert followed_up_to(table.place) == 99
    with pytest.raises(VersionGone):
        table.added(80, table.version)
