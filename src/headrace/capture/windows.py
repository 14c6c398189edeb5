"""Decisions on windows of time and size, which end files."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from headrace.capture.places import hour_of


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum duration and size of a file."""

    window_ms: int
    size_bytes_max: int


@dataclass(frozen=True, slots=True)
class Window:
    """The window of an open file: its first offset, opening time and first hour."""

    first_offset: int
    opened_ms: int
    hour: int

    def is_over(self, now_ms: int, limits: Limits) -> bool:
        """Return whether the window has ended, also after the clock was set back."""
        age_ms = now_ms - self.opened_ms
        return age_ms >= limits.window_ms or age_ms < -limits.window_ms


def fitting(
    stamps: Sequence[tuple[int, int]], begin: int, hour: int | None, room_bytes: int
) -> int:
    """Count the records from `begin` that fit into the open file, or a new one if hour is None.

    Each has a timestamp and a size. A record of a later hour starts a new file; a late record does
    not. The first record of a file may exceed the size limit.
    """
    size_bytes = 0
    for count, (timestamp_ms, size) in enumerate(islice(stamps, begin, None)):
        record_hour = hour_of(timestamp_ms)
        if hour is None:
            hour = record_hour
        elif record_hour > hour or size_bytes + size > room_bytes:
            return count
        size_bytes += size
    return len(stamps) - begin


def resume_at(by_files: int | None, by_group: int | None) -> int | None:
    """Return the next offset: after the last complete file, or the committed offset.

    A crash before the commit leaves the group behind; moving files away leaves the files behind.
    The later offset is right in both cases.
    """
    known = [offset for offset in (by_files, by_group) if offset is not None and offset >= 0]
    return max(known, default=None)
