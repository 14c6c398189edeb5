"""Tidying that a running pipeline asks for, so that a table stays quick however long it is fed.

A commit every second leaves a file or more each. Joining them and removing what was joined keeps
the list of files, the log and the disk in proportion to the rows.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from headrace.lake.catalog import Lake
from headrace.lake.rewriting import SMALL, joinable
from headrace.lake.tables import Optimized

SMALL_FILES_MAX = 100
"""So many files that could be joined are worth the work."""
VACUUM_EVERY_S = 86_400


@dataclass(frozen=True, slots=True)
class Tidied:
    """What was done; nothing most of the time."""

    optimized: Optimized | None = None
    files_removed: int = 0


def tidy(
    lake: Lake,
    name: str,
    generation: int | None = None,
    *,
    up_to_version: int | None = None,
    small_files_max: int = SMALL_FILES_MAX,
    now_s: float | None = None,
) -> Tidied:
    """Join and remove files of a table if it is time to; cheap enough for every 100th commit.

    Files that came behind `up_to_version` stay, for readers who follow the table and are not there.
    It may run beside the table's writer: what is committed meanwhile stays.
    """
    table = lake.table(name, generation)
    # In which order files came is not asked here, so the large ones between them do not count.
    groups = joinable([file for file in table.files() if file.size_bytes < SMALL])
    optimized = None
    if sum(len(group) - 1 for group in groups) >= small_files_max:
        optimized = lake.optimize(name, generation, up_to_version)
    moment = time.time() if now_s is None else now_s
    stamp = lake.root / "_headrace" / "vacuumed" / "/".join(table.place.parts[-2:])
    # A stamp of the future is of a clock that was set back since, and must not hold this up.
    if 0 <= moment - _stamped(stamp, moment) < VACUUM_EVERY_S:
        return Tidied(optimized)
    removed = table.vacuum()
    os.utime(stamp, (moment, moment))
    return Tidied(optimized, len(removed))


def _stamped(stamp: Path, now_s: float) -> float:
    """When the table was last vacuumed; the first time that one asks counts as such."""
    try:
        return stamp.stat().st_mtime
    except FileNotFoundError:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
        os.utime(stamp, (now_s, now_s))
        return now_s
