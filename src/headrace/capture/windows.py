"""When a file is complete: decisions about the window of time and size that it covers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from headrace.capture.places import hour_of


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how large a file may become."""

    window_ms: int
    size_bytes_max: int


@dataclass(frozen=True, slots=True)
class Window:
    """What an open file covers: from an offset on, since a moment, beginning with an hour."""

    first_offset: int
    opened_ms: int
    hour: int

    def is_over(self, now_ms: int, limits: Limits) -> bool:
        """Whether its time is up, also when the clock was set back."""
        age_ms = now_ms - self.opened_ms
        return age_ms >= limits.window_ms or age_ms < -limits.window_ms


def fitting(
    stamps: Sequence[tuple[int, int]], begin: int, hour: int | None, room_bytes: int
) -> int:
    """How many records from `begin` on go into the open file, or into a new one if hour is None.

    Each has a timestamp and a size. A record of a later hour begins a file in a folder of its
    own; a late one does not. None is let in for which there is no room, but for the first of a
    file, which may be larger than a file should be.
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
    """Where to go on: after the last complete file, or after what the group has committed.

    A crash after a file was completed leaves the group behind; who moves files away after the
    fact leaves the files behind. The later one is right in both cases.
    """
    known = [offset for offset in (by_files, by_group) if offset is not None and offset >= 0]
    return max(known, default=None)
