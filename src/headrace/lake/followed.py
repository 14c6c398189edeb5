"""How far those have come who follow a table commit by commit, noted beside its files.

A flow that stands still, as with a failed expectation, asks for the log from there on when it goes
on. Whoever commits also cleans the log, and knows no flows; whoever knows them leaves word here.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from headrace.lake.commits import CommitLog
from headrace.runtime import files

_NOTE = "_followed"
"""Readers of Delta, and vacuum, pass over names that begin so."""
_RETENTION = "delta.logRetentionDuration"
_RETENTION_DEFAULT = "interval 30 days"
"""Delta's, for tables that do not say."""
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


def note_followed(place: Path, version: int | None) -> None:
    """Let it be known up to which version all have read who follow the table; None if nobody does.

    Of one that reads the table for the first time it is -1.
    """
    if followed_up_to(place) == version:
        return
    if version is None:
        files.unlink_if_there(str(place / _NOTE))
    else:
        files.replace_file(str(place / _NOTE), str(version).encode(), sync=False)


def followed_up_to(place: Path) -> int | None:
    """What was noted last."""
    try:
        return int((place / _NOTE).read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        return -1  # Not synced, so a crash of the machine may leave half of it.


def is_old_log_needed(
    log: CommitLog, newest: int, properties: Mapping[str, str], now_s: float
) -> bool:
    """Whether someone has yet to read what is older than the table keeps its log for.

    What one needs who is behind the whole log is gone already, and holds nothing up.
    """
    read = followed_up_to(log.place)
    if read is None or read >= newest:
        return False
    written_s = log.written_s(read + 1)
    if written_s is None:
        return read < 0  # A first reading goes on with the version that it began with.
    return written_s < now_s - _kept_s(properties)


def _kept_s(properties: Mapping[str, str]) -> float:
    """For how long a table keeps its log; nothing if it says so in words that are not known."""
    found = _INTERVAL.fullmatch(properties.get(_RETENTION, _RETENTION_DEFAULT).strip())
    return int(found[1]) * _UNITS_S.get(found[2].lower(), 0.0) if found else 0.0
