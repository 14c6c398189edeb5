"""The position of the readers that follow a table commit by commit, in a file of its folder.

A stopped flow, as after a failed expectation, later continues with the log from its position. A
writer cleans the log without knowing the flows, so the pipeline records their position here.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from headrace.lake.commit_log import CommitLog
from headrace.runtime import files

_NOTE = "_followed"
"""Readers of Delta and vacuum skip names with an underscore in front."""
_RETENTION = "delta.logRetentionDuration"
_RETENTION_DEFAULT = "interval 30 days"
"""Delta's default."""
_INTERVAL = re.compile(r"interval\s+(\d+)\s+([a-z]+?)s?", re.IGNORECASE)
_UNITS_S = {
    "nanosecond": 1e-9,
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}


def record_reader_position(place: Path, version: int | None) -> None:
    """Record the version that all following readers have read; None if no reader follows.

    It is -1 while a reader reads the table for the first time.
    """
    if reader_position(place) == version:
        return
    if version is None:
        files.unlink_if_there(str(place / _NOTE))
    else:
        files.replace_file(str(place / _NOTE), str(version).encode(), sync=False)


def reader_position(place: Path) -> int | None:
    """Return the recorded version."""
    try:
        return int((place / _NOTE).read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        return -1  # The file is not synced, so a crash of the machine may truncate it.


def is_old_log_needed(
    log: CommitLog, newest: int, properties: Mapping[str, str], now_ms: int
) -> bool:
    """Return whether a reader still needs log entries beyond the table's retention.

    A reader behind the whole log has lost its entries already, so it retains nothing.
    """
    read = reader_position(log.place)
    if read is None or read >= newest:
        return False
    written_s = log.written_s(read + 1)
    if written_s is None:
        return read < 0  # A first read continues with the version that it began with.
    return written_s < now_ms / 1000 - _kept_s(properties)


def _kept_s(properties: Mapping[str, str]) -> float:
    """Return the log retention of a table; 0 if its property cannot be parsed."""
    found = _INTERVAL.fullmatch(properties.get(_RETENTION, _RETENTION_DEFAULT).strip())
    return int(found[1]) * _UNITS_S.get(found[2].lower(), 0.0) if found else 0.0
