"""The end of a topic, read once for all who listen there.

One consumer reads; the newest records lie in a ring of bounded size, and each client has but a
number in it. A client that the ring has overtaken has to read for itself for a while. So memory
does not grow with the clients, nor with the slowest of them.
"""

import asyncio
from collections.abc import Mapping, Sequence

from headrace.errors import HeadraceError
from headrace.rest.push.entries import Entry, piece_after
from headrace.rest.push.positions import written

_ENTRIES_MAX = 10_000


class Ring:
    """The newest records in their order, by numbers that only grow."""

    def __init__(self, positions: Mapping[int, int], bytes_max: int) -> None:
        self.positions = dict(positions)
        """Where the reading stands: the offsets that come next."""
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
        """The number of the record that comes next."""
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
        """Some records from this number on; None if the first of them have gone already."""
        if cursor < self._first:
            return None
        return piece_after(self._entries, cursor - self._first)

    def holds_all_after(self, positions: Mapping[int, int]) -> bool:
        """Whether who stands there misses nothing by going on with the ring."""
        return positions.keys() == self._oldest.keys() and all(
            positions[one] >= offset for one, offset in self._oldest.items()
        )

    def _trim(self) -> None:
        """Drop a quarter at a time: a list is cut at its front at the price of its length."""
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
    """A ring, and who waits for its next record."""

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
        """Like the ring's, but it waits for a record if there is none yet."""
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
