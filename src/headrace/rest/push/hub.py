"""All streams of a proxy: their number, their shared tails, and their end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from headrace.errors import HeadraceError
from headrace.http.streams import EventStreams
from headrace.rest.errors import RestError
from headrace.rest.push.reading import Reader
from headrace.rest.push.requested import StreamRequest
from headrace.rest.push.tail import Ring, Tail
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_POLL_S = 1.0
_LINGER_S = 5.0
"""Time for which a tail without clients is kept for new ones."""

TailKey = tuple[tuple[tuple[str, str], ...], str, tuple[int, ...] | None]
"""Client properties, topic and selected partitions of a tail."""


class Hub:
    """Bounds the number of streams and their consumers, and shares consumers at the tail."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._tails: dict[TailKey, asyncio.Future[Tail]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients = 0
        self._readers = 0
        self.streams = EventStreams(settings.push_stall_ms / 1000)

    @property
    def clients(self) -> int:
        return self._clients

    @property
    def readers(self) -> int:
        """Number of consumers, including those of tails."""
        return self._readers

    @asynccontextmanager
    async def client(self) -> AsyncIterator[None]:
        """Count a client while this is open, or raise an error at the limit."""
        if self._clients >= self._settings.push_clients_max or self.streams.is_stopping:
            raise _full(f"{self._clients} clients (push.clients.max)")
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1

    def reader(self, properties: Mapping[str, str]) -> Reader:
        """Open a consumer, to be closed by `release`."""
        if self._readers >= self._settings.push_readers_max:
            raise _full(f"{self._readers} consumers (push.readers.max)")
        reader = Reader(properties, self._settings.timeout_s)
        self._readers += 1
        return reader

    async def release(self, reader: Reader) -> None:
        """Close a consumer, even if the caller is cancelled in the meantime."""
        self._readers -= 1
        task = asyncio.create_task(reader.close())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def tail(self, key: TailKey) -> Tail:
        """Return the tail of a topic; a new one starts at the end."""
        known = self._tails.get(key)
        if known is None:
            known = self._tails[key] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._follow(key, known))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(known)

    async def close(self) -> None:
        """Wait for the end of streams, then of their consumers."""
        self.streams.stop()
        await self.streams.ended(self._settings.timeout_s)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=self._settings.timeout_s)

    async def _follow(self, key: TailKey, opened: "asyncio.Future[Tail]") -> None:
        """Read the tail of a topic while it has clients."""
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
                _log.warning(
                    "shared reader of a stream failed", extra={"topic": key[1], "error": str(error)}
                )
                opened.result().fail(error)
            else:
                opened.set_exception(error)
        finally:
            # New clients open a new tail; this one has no clients, or all get its error.
            del self._tails[key]
            await self.release(reader)

    async def _opened(self, reader: Reader, key: TailKey) -> Tail:
        _, topic, chosen = key
        ends = await reader.begin(StreamRequest(topic=topic, partitions=chosen))
        return Tail(Ring(ends, self._settings.push_tail_bytes))

    async def _append(self, reader: Reader, tail: Tail) -> None:
        loop = asyncio.get_running_loop()
        used_at = loop.time()
        while not self.streams.is_stopping:
            entries = await reader.read(_POLL_S)
            if entries:
                tail.append(entries)
            if tail.clients:
                used_at = loop.time()
            elif loop.time() - used_at > _LINGER_S:
                return


def _full(reason: str) -> RestError:
    return RestError(
        503, 50301, f"too many streams: {reason}; try again later", headers={"Retry-After": "5"}
    )
