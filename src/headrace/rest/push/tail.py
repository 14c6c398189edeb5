"""The tail of a topic, read once for all its clients.

One consumer reads into a ring of bounded size, and each client has a cursor in it. A client whose
next record was dropped reads with its own consumer for a while. So memory grows neither with the
number of clients nor with their lag.
"""

import asyncio
from collections.abc import Mapping, Sequence

from headrace.errors import HeadraceError
from headrace.rest.push.entries import Entry, piece_after
from headrace.rest.push.positions import written

_ENTRIES_MAX = 10_000


class Ring:
    """The newest records in order, numbered by a growing counter."""

    def __init__(self, positions: Mapping[int, int], bytes_max: int) -> None:
        self.positions = dict(positions)
        """The next offsets of the reader."""
        self._oldest = dict(positions)
        self._entries: list[Entry] = []
        self._bytes = 0
        self._first = 0
        self._bytes_max = bytes_max

    @property
    def first(self) -> int:
        return self._first

    @property
    def end(self) -> int:
        """The number of the next record."""
        return self._first + len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.positions[entry.partition] = entry.offset + 1
            entry.id = written(self.positions)
            self._bytes += entry.weight
        self._entries += entries
        self._trim()

    def after(self, cursor: int) -> list[Entry] | None:
        """Return records from a number on; None if the first one was dropped."""
        if cursor < self._first:
            return None
        return piece_after(self._entries, cursor - self._first)

    def holds_all_after(self, positions: Mapping[int, int]) -> bool:
        """Return whether the ring has all records after these positions."""
        return positions.keys() == self._oldest.keys() and all(
            positions[one] >= offset for one, offset in self._oldest.items()
        )

    def _trim(self) -> None:
        """Drop a quarter at a time, because removing the front of a list costs its length."""
        while self._entries and (
            self._bytes > self._bytes_max or len(self._entries) > _ENTRIES_MAX
        ):
            count = max(1, len(self._entries) // 4)
            for entry in self._entries[:count]:
                self._oldest[entry.partition] = entry.offset + 1
                self._bytes -= entry.weight
            del self._entries[:count]
            self._first += count


class Tail:
    """A ring, and the clients that wait for its next record."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.clients = 0
        self.failure: HeadraceError | None = None
        self._news = asyncio.Event()

    def append(self, entries: Sequence[Entry]) -> None:
        self.ring.append(entries)
        self._wake()

    def fail(self, error: HeadraceError) -> None:
        self.failure = error
        self._wake()

    async def after(self, cursor: int, timeout_s: float) -> list[Entry] | None:
        """Return records like the ring, but wait for the first one."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            if self.failure is not None:
                raise self.failure
            found = self.ring.after(cursor)
            if found is None or found:
                return found
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return []

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
