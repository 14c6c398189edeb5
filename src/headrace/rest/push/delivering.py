"""Delivery from a feed to a connection: formats, filters, heartbeats, the end."""

import asyncio

from headrace.http.errors import HttpError
from headrace.rest.errors import RestError
from headrace.rest.push.entries import Entry, Showing
from headrace.rest.push.feeds import Feed
from headrace.rest.push.requested import StreamRequest
from headrace.rest.schemas import Schemas


class Piece:
    """Records that arrived together, those that match the filter, and the position after them."""

    __slots__ = ("entries", "position", "wanted")

    def __init__(
        self, entries: list[tuple[Entry, str]], wanted: list[tuple[Entry, str]], position: str
    ) -> None:
        self.entries = entries
        self.wanted = wanted
        self.position = position


class Pieces:
    """The pieces of one client, in its formats and after its filter."""

    def __init__(self, feed: Feed, request: StreamRequest, schemas: Schemas) -> None:
        self._feed = feed
        self._request = request
        self._showing = Showing(schemas, request.formats)

    async def next(self, timeout_s: float) -> Piece:
        found = await self._feed.next(timeout_s)
        entries = [entry for entry, _ in found]
        if self._request.formats.require_schema:
            await asyncio.to_thread(self._showing.prepare, entries)
        else:
            self._showing.prepare(entries)
        return Piece(found, self._wanted(found), self._feed.position())

    def _wanted(self, found: list[tuple[Entry, str]]) -> list[tuple[Entry, str]]:
        filter, formats = self._request.filter, self._request.formats
        if filter is None:
            return found
        return [one for one in found if one[0].verdict(formats, filter)]


class Lifetime:
    """The time limit of a stream, and the longest wait for a record."""

    def __init__(self, heartbeat_ms: int, duration_max_ms: int) -> None:
        self._heartbeat_s = heartbeat_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + duration_max_ms / 1000

    @property
    def is_over(self) -> bool:
        return self._loop.time() >= self._until

    def wait_s(self) -> float:
        return max(0.0, min(self._heartbeat_s, self._until - self._loop.time()))


def over() -> HttpError:
    """Return the error at the end of a stream's lifetime."""
    return RestError(
        503,
        50303,
        "the stream has reached its maximum duration (streaming.connection.max.duration.ms):"
        " connect again",
    )


def stopping() -> HttpError:
    """Return the error for streams of a stopping proxy."""
    return RestError(503, 50302, "the proxy is stopping; reconnect and resume after the last id")
