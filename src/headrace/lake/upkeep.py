"""Maintenance of a table by a running pipeline.

A commit every second leaves at least one file each. Joining them and removing the old ones keeps
the list of files, the log and the disk usage in proportion to the rows.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from headrace.lake.catalog import Lake
from headrace.lake.rewriting import SMALL, Optimized, joinable

SMALL_FILES_MAX = 100
"""The number of joinable files that starts an optimize."""
VACUUM_EVERY_S = 86_400


@dataclass(frozen=True, slots=True)
class Tidied:
    """The work of one call; most calls do nothing."""

    optimized: Optimized | None = None
    files_removed: int = 0


def tidy(
    lake: Lake,
    name: str,
    generation: int | None = None,
    *,
    up_to_version: int | None = None,
    small_files_max: int = SMALL_FILES_MAX,
) -> Tidied:
    """Join and vacuum the files of a table if due; cheap enough for every 100th commit.

    Files after `up_to_version` stay for readers that follow the table. The table's writer may
    commit meanwhile.
    """
    table = lake.table(name, generation)
    # The order of files is not looked up here, so large files between small ones do not count.
    groups = joinable([file for file in table.files() if file.size_bytes < SMALL])
    optimized = None
    if sum(len(group) - 1 for group in groups) >= small_files_max:
        optimized = lake.optimize(name, generation, up_to_version)
    now_s = lake.clock.now_ms() / 1000
    stamp = lake.root / "_headrace" / "vacuumed" / "/".join(table.place.parts[-2:])
    # A stamp in the future comes from a clock that was set back, and must not delay the vacuum.
    if 0 <= now_s - _stamped(stamp, now_s) < VACUUM_EVERY_S:
        return Tidied(optimized)
    removed = table.vacuum()
    os.utime(stamp, (now_s, now_s))
    return Tidied(optimized, len(removed))


def _stamped(stamp: Path, now_s: float) -> float:
    """Return the time of the last vacuum; the first call counts as one."""
    try:
        return stamp.stat().st_mtime
    except FileNotFoundError:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
        os.utime(stamp, (now_s, now_s))
        return now_s
