"""From a feed to a connection: forms, filters, heartbeats, and an end for who does not read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.types import Scope

from headrace.http.errors import HttpError
from headrace.http.server import UNSENT_KEY
from headrace.rest.errors import RestError
from headrace.rest.push.entries import Entry, Showing
from headrace.rest.push.feeds import Feed
from headrace.rest.push.requested import StreamRequest
from headrace.rest.schemas import Schemas

T = TypeVar("T")

_LOOK_S = 0.005


class Piece:
    """Records that came together: which of them the client wants, and where they leave it."""

    __slots__ = ("entries", "position", "wanted")

    def __init__(
        self, entries: list[tuple[Entry, str]], wanted: list[tuple[Entry, str]], position: str
    ) -> None:
        self.entries = entries
        self.wanted = wanted
        self.position = position


class Pieces:
    """The pieces of one client, in its forms and after its filter."""

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


async def taken(sending: Awaitable[T], stall_s: float) -> T:
    """What a send came to; a client that takes nothing for too long has had its chance."""
    try:
        async with asyncio.timeout(stall_s):
            return await sending
    except TimeoutError:
        raise Stalled(
            408, 40802, f"the client has read nothing for {stall_s:g} seconds (push.stall.ms)"
        ) from None


async def sent(scope: Scope, stall_s: float) -> None:
    """Wait until the system has taken all that a connection was given.

    For groups: what a connection only holds is lost when it ends, and must not count as delivered.
    """
    unsent: Callable[[], int] | None = scope.get("state", {}).get(UNSENT_KEY)
    if unsent is not None:
        await asyncio.sleep(0)  # The loop writes at the end of its turn.
        await taken(_emptied(unsent), stall_s)


async def _emptied(unsent: Callable[[], int]) -> None:
    while unsent():
        await asyncio.sleep(_LOOK_S)


class Stalled(RestError):
    """A client that does not read; it cannot even be told."""


class Lifetime:
    """How long a stream may last, and how long it may wait for a record until then."""

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
    """What clients are told whose time is up."""
    return RestError(
        503,
        50303,
        "the stream has lasted as long as it may (streaming.connection.max.duration.ms):"
        " connect again",
    )


def stopping() -> HttpError:
    """What clients are told when the proxy ends."""
    return RestError(503, 50302, "the proxy stops; connect again and go on from the last id")
