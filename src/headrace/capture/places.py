"""Where captured records lie: names of folders and files, and what they tell after a restart.

`orders/0/2026-11-17/09/00000000000000000012-00000000000000000099.avro` holds the offsets 12 to 99
of partition 0; the first of them is of that hour, by UTC. A file has this name only when it is
complete, so the names alone tell how far a capture has come.
"""

import re
import time
from collections.abc import Iterable
from pathlib import PurePosixPath

HOUR_MS = 3_600_000
TEMPORARY_SUFFIX = ".tmp"
TOPIC_FILE = ".topic"
"""Beside the partitions: which topic of this name the files are of."""

TIMESTAMP_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999; records may claim later ones."""

COMPLETE = re.compile(r"(\d{20})-(\d{20})\.(?:avro|parquet)")


def hour_of(timestamp_ms: int) -> int:
    """Hours since 1970; a time that no calendar has counts as its nearest."""
    return min(max(timestamp_ms, 0), TIMESTAMP_MS_MAX) // HOUR_MS


def folder_of(topic: str, partition: int, hour: int) -> PurePosixPath:
    """The folder of a partition's records of an hour, below the capture's directory."""
    begin = time.gmtime(hour * HOUR_MS // 1000)
    date = f"{begin.tm_year:04}-{begin.tm_mon:02}-{begin.tm_mday:02}"
    return PurePosixPath(topic, str(partition), date, f"{begin.tm_hour:02}")


def complete_name(first: int, last: int, suffix: str) -> str:
    return f"{first:020}-{last:020}.{suffix}"


def empty_name(next_offset: int, opened_ms: int, suffix: str) -> str:
    """A window in which nothing came; it tells no offsets."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(opened_ms // 1000))
    return f"{next_offset:020}-empty-{moment}.{suffix}"


def temporary_name(first: int, suffix: str) -> str:
    """Hidden, so that no reader of the folder takes it for data."""
    return f".{first:020}.{suffix}{TEMPORARY_SUFFIX}"


def next_offset(names: Iterable[str]) -> int | None:
    """Where a partition's capture goes on, by the names of its files; None if there are none."""
    found = (COMPLETE.fullmatch(name) for name in names)
    return max((int(match[2]) + 1 for match in found if match is not None), default=None)
