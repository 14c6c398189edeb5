"""Names of folders and files of captured records, and the next offset by these names.

`orders/0/2026-11-17/09/00000000000000000012-00000000000000000099.avro` holds the offsets 12 to 99
of partition 0; the first record is of that hour in UTC. A file gets this name when it is complete,
so the names determine the progress of a capture.
"""

import re
import time
from collections.abc import Iterable
from pathlib import PurePosixPath

HOUR_MS = 3_600_000
TEMPORARY_SUFFIX = ".tmp"
TOPIC_FILE = ".topic"
"""File with the topic id, next to the folders of partitions."""

TIMESTAMP_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999; timestamps of records may be later."""

COMPLETE = re.compile(r"(\d{20})-(\d{20})\.(?:avro|parquet)")


def hour_of(timestamp_ms: int) -> int:
    """Return the hours since 1970, limited to the years 1970 to 9999."""
    return min(max(timestamp_ms, 0), TIMESTAMP_MS_MAX) // HOUR_MS


def folder_of(topic: str, partition: int, hour: int) -> PurePosixPath:
    """Return the folder of a partition and an hour, below the capture's directory."""
    begin = time.gmtime(hour * HOUR_MS // 1000)
    date = f"{begin.tm_year:04}-{begin.tm_mon:02}-{begin.tm_mday:02}"
    return PurePosixPath(topic, str(partition), date, f"{begin.tm_hour:02}")


def complete_name(first: int, last: int, suffix: str) -> str:
    return f"{first:020}-{last:020}.{suffix}"


def empty_name(next_offset: int, opened_ms: int, suffix: str) -> str:
    """Return the name of a file without records, which does not count for the next offset."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(opened_ms // 1000))
    return f"{next_offset:020}-empty-{moment}.{suffix}"


def temporary_name(first: int, suffix: str) -> str:
    """Return the name of an incomplete file, which is hidden from readers of the folder."""
    return f".{first:020}.{suffix}{TEMPORARY_SUFFIX}"


def next_offset(names: Iterable[str]) -> int | None:
    """Return the next offset by the names of complete files; None without files."""
    found = (COMPLETE.fullmatch(name) for name in names)
    return max((int(match[2]) + 1 for match in found if match is not None), default=None)
