"""All streams of a proxy: how many there may be, the tails that they share, and their end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from headrace.errors import HeadraceError
from headrace.rest.errors import RestError, partition_not_found
from headrace.rest.push.reading import Reader
from headrace.rest.push.tail import Ring, Tail
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_POLL_S = 1.0
_LINGER_S = 5.0
"""How long a tail is read on that nobody listens to: clients come back."""

TailKey = tuple[tuple[tuple[str, str], ...], str, tuple[int, ...] | None]
"""In whose name, of which topic, and which of its partitions."""


class Hub:
    """Bounds streams and their consumers, and lets those at the tail share one."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._tails: dict[TailKey, asyncio.Future[Tail]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: set[asyncio.Task[None]] = set()
        self._clients = 0
        self._readers = 0
        self.is_stopping = False

    @property
    def clients(self) -> int:
        return self._clients

    @property
    def readers(self) -> int:
        """How many consumers read, those of tails among them."""
        return self._readers

    @asynccontextmanager
    async def client(self) -> AsyncIterator[None]:
        """The place of one client; there are only so many."""
        if self._clients >= self._settings.push_clients_max or self.is_stopping:
            raise _full(f"{self._clients} clients listen (push.clients.max)")
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1

    def reader(self, properties: Mapping[str, str]) -> Reader:
        """A consumer; who takes it gives it back by `release`."""
        if self._readers >= self._settings.push_readers_max:
            raise _full(f"{self._readers} consumers read for streams (push.readers.max)")
        reader = Reader(properties, self._settings.timeout_s)
        self._readers += 1
        return reader

    async def release(self, reader: Reader) -> None:
        """Close a consumer, even if who held it is cancelled meanwhile."""
        self._readers -= 1
        task = asyncio.create_task(reader.close())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def tail(self, key: TailKey) -> Tail:
        """The tail of a topic, whose reading begins at the end if nobody listens yet."""
        known = self._tails.get(key)
        if known is None:
            known = self._tails[key] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._follow(key, known))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(known)

    def add_stream(self, task: "asyncio.Task[None]") -> None:
        """Something that is told when the proxy stops, by being cancelled."""
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)

    def stop(self) -> None:
        """End all streams; clients are told, and come back elsewhere or later."""
        self.is_stopping = True
        for task in self._streams:
            task.cancel()

    async def close(self) -> None:
        """Wait for streams to end, then for the consumers that they leave."""
        self.stop()
        for tasks in (self._streams, self._tasks):
            if tasks:
                await asyncio.wait(set(tasks), timeout=self._settings.timeout_s)

    async def _follow(self, key: TailKey, opened: "asyncio.Future[Tail]") -> None:
        """Read the end of a topic for as long as anybody listens."""
        try:
            reader = self.reader(dict(key[0]))
        except HeadraceError as error:
            del self._tails[key]
            opened.set_exception(error)
            return
        try:
            tail = await self._opened(reader, key)
            opened.set_result(tail)
            await self._append(reader, tail)
        except HeadraceError as error:
            if opened.done():
                _log.warning("the shared reading of %s failed: %s", key[1], error)
                opened.result().fail(error)
            else:
                opened.set_exception(error)
        finally:
            # Who comes now begins a new tail; nobody is left in this one, or all were told.
            del self._tails[key]
            await self.release(reader)

    async def _opened(self, reader: Reader, key: TailKey) -> Tail:
        _, topic, chosen = key
        partitions = await reader.partitions_of(topic)
        if chosen is not None and not set(partitions).issuperset(chosen):
            raise partition_not_found()
        ends = await reader.ends(topic, partitions if chosen is None else chosen)
        await reader.go_on(topic, ends)
        return Tail(Ring(ends, self._settings.push_tail_bytes))

    async def _append(self, reader: Reader, tail: Tail) -> None:
        loop = asyncio.get_running_loop()
        used_at = loop.time()
        while not self.is_stopping:
            entries = await reader.read(_POLL_S)
            if entries:
                tail.append(entries)
            if tail.clients:
                used_at = loop.time()
            elif loop.time() - used_at > _LINGER_S:
                return


def _full(reason: str) -> RestError:
    return RestError(
        503, 50301, f"this proxy is full: {reason}; try again later", headers={"Retry-After": "5"}
    )


async def cancelled(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait for its end; what it fails with is its own affair."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
