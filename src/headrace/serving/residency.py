"""Which loaded tables have to go when another one comes: those that were not used for longest."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resident:
    """A table that is held in memory."""

    name: str
    size_bytes: int
    used_at: float


def room_for(needed_bytes: int, residents: Iterable[Resident], bytes_max: int) -> list[str] | None:
    """The tables to give up, least recently used first; None if even all of them are too few."""
    if needed_bytes > bytes_max:
        return None
    by_age = sorted(residents, key=lambda one: one.used_at)
    free = bytes_max - sum(one.size_bytes for one in by_age)
    leaving: list[str] = []
    for one in by_age:
        if free >= needed_bytes:
            break
        leaving.append(one.name)
        free += one.size_bytes
    return leaving
