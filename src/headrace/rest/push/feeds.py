"""Feeds: the records for one client of a stream.

`PositionFeed` has its own offsets. It reads with its own consumer while it is behind, and switches
to the shared tail once the tail has all further records. `GroupFeed` is a member of a consumer
group.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from headrace.rest.push.entries import PIECE_BYTES, Entry
from headrace.rest.push.hub import Hub, TailKey
from headrace.rest.push.positions import written
from headrace.rest.push.reading import Reader
from headrace.rest.push.requested import StreamRequest
from headrace.rest.push.tail import Tail

_COMMIT_S = 1.0
_SLICE_S = 1.0


class Feed(Protocol):
    """Records in pieces, and the position of the client."""

    async def next(self, timeout_s: float) -> list[tuple[Entry, str]]:
        """Return the next records with the positions after them; none after the timeout."""
        ...

    def position(self) -> str:
        """Return the position after all returned records."""
        ...

    def delivered(self, partition: int, offset: int) -> None:
        """Note that the client has all records up to this offset of a partition."""
        ...

    async def idle(self) -> None:
        """Stay connected while no records may be read."""
        ...

    async def close(self) -> None: ...


async def opened(hub: Hub, properties: Mapping[str, str], request: StreamRequest) -> Feed:
    """Open the feed of a client, or raise an error before anything is sent."""
    if request.group is not None:
        return await GroupFeed.opened(hub, {**properties, "group.id": request.group}, request)
    return await PositionFeed.opened(hub, properties, request)


class PositionFeed:
    """Reads from offsets that the client keeps; nothing is committed."""

    def __init__(self, hub: Hub, properties: Mapping[str, str], request: StreamRequest) -> None:
        self._hub = hub
        self._properties = properties
        self._topic = request.topic
        self._key: TailKey = tuple(sorted(properties.items())), request.topic, request.partitions
        self._positions: dict[int, int] = {}
        self._reader: Reader | None = None
        self._tail: Tail | None = None
        self._cursor = 0
        self._is_aligned = False

    @classmethod
    async def opened(
        cls, hub: Hub, properties: Mapping[str, str], request: StreamRequest
    ) -> "PositionFeed":
        feed = cls(hub, properties, request)
        if request.is_at_the_tail:
            tail = await hub.tail(feed._key)
            feed._positions = dict(tail.ring.positions)
            feed._join(tail, tail.ring.end)
            return feed
        feed._reader = hub.reader(properties)
        try:
            feed._positions = await feed._reader.begin(request)
        except BaseException:
            await feed.close()
            raise
        return feed

    @property
    def is_sharing(self) -> bool:
        return self._tail is not None

    async def next(self, timeout_s: float) -> list[tuple[Entry, str]]:
        if self._tail is not None:
            entries = await self._tail.after(self._cursor, timeout_s)
            if entries is not None:
                self._cursor += len(entries)
                return self._numbered(entries)
            await self._leave_tail()
        assert self._reader is not None
        # In slices, so that the feed soon switches to the tail at the end.
        entries = await self._reader.read(min(timeout_s, _SLICE_S), PIECE_BYTES)
        if not entries:
            await self._switch_to_tail()
        return self._numbered(entries)

    def position(self) -> str:
        return written(self._positions)

    def delivered(self, partition: int, offset: int) -> None:
        """Do nothing: no offsets are committed."""

    async def idle(self) -> None:
        """Do nothing: there is no group to stay in."""

    async def close(self) -> None:
        if self._tail is not None:
            self._tail.clients -= 1
            self._tail = None
        if self._reader is not None:
            reader, self._reader = self._reader, None
            await self._hub.release(reader)

    def _numbered(self, entries: list[Entry]) -> list[tuple[Entry, str]]:
        positions = self._positions
        found = []
        for entry in entries:
            if entry.offset < positions.get(entry.partition, 0):
                continue  # The ring begins before the client's position.
            positions[entry.partition] = entry.offset + 1
            found.append((entry, entry.id if self._is_aligned else written(positions)))
        if self._tail is not None and not self._is_aligned and self._cursor == self._tail.ring.end:
            self._is_aligned = positions == self._tail.ring.positions
        return found

    def _join(self, tail: Tail, cursor: int) -> None:
        self._tail, self._cursor = tail, cursor
        self._is_aligned = self._positions == tail.ring.positions and cursor == tail.ring.end
        tail.clients += 1

    async def _switch_to_tail(self) -> None:
        """Switch to the shared tail if it has all further records."""
        if self._hub.streams.is_stopping:
            return
        tail = await self._hub.tail(self._key)
        if tail.failure is None and tail.ring.holds_all_after(self._positions):
            assert self._reader is not None
            self._join(tail, tail.ring.first)
            reader, self._reader = self._reader, None
            await self._hub.release(reader)

    async def _leave_tail(self) -> None:
        """Switch to an own consumer, because the ring has dropped the next record."""
        reader = self._hub.reader(self._properties)
        assert self._tail is not None
        self._tail.clients -= 1
        self._tail, self._reader = None, reader
        self._is_aligned = False  # Only records of the tail have its ids.
        await reader.start_at(self._topic, self._positions)


class GroupFeed:
    """A member of a group, which commits delivered records regularly."""

    def __init__(self, hub: Hub, reader: Reader, request: StreamRequest) -> None:
        self._hub = hub
        self._reader = reader
        self._topic = request.topic
        # With acknowledgements, the consumer must be polled to stay a member, which requires that
        # it has no pending records.
        self._bytes_max = None if request.acknowledges else PIECE_BYTES
        self._positions: dict[int, int] = {}
        self._committed_at = asyncio.get_running_loop().time()

    @classmethod
    async def opened(
        cls, hub: Hub, properties: Mapping[str, str], request: StreamRequest
    ) -> "GroupFeed":
        reader = hub.reader({**properties, "auto.offset.reset": request.start.value})
        try:
            await reader.join([request.topic])
        except BaseException:
            await hub.release(reader)
            raise
        return cls(hub, reader, request)

    async def next(self, timeout_s: float) -> list[tuple[Entry, str]]:
        found = []
        for entry in await self._read(timeout_s):
            self._positions[entry.partition] = entry.offset + 1
            found.append((entry, written(self._positions)))
        return found

    def position(self) -> str:
        return written(self._positions)

    def delivered(self, partition: int, offset: int) -> None:
        self._reader.note(self._topic, partition, offset + 1)

    async def idle(self) -> None:
        await self._reader.stay()
        await self._commit_if_due()

    async def close(self) -> None:
        await self._hub.release(self._reader)

    async def _read(self, timeout_s: float) -> list[Entry]:
        """Read in slices, so that acknowledgements are committed soon."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            await self._commit_if_due()
            left_s = max(0.0, deadline - loop.time())
            entries = await self._reader.read(min(left_s, _COMMIT_S), self._bytes_max)
            if entries or loop.time() >= deadline:
                return entries

    async def _commit_if_due(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._reader.has_to_commit and now - self._committed_at >= _COMMIT_S:
            await self._reader.commit()
            self._committed_at = now
