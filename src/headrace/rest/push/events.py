"""Server-Sent Events: a stream as an HTTP answer without end.

An event's `id` is the client's position after it, so a browser that connects again sends it as
`Last-Event-ID` and goes on with the very next record. Where a filter lets nothing through, the
heartbeat carries the position on.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.http.bodies import until_gone
from headrace.http.errors import HttpError
from headrace.http.server import ABORT_KEY
from headrace.rest.errors import body_of, of_client
from headrace.rest.push.delivering import Lifetime, Piece, Pieces, Stalled, sent, stopping, taken
from headrace.rest.push.entries import PIECE_BYTES, Entry
from headrace.rest.push.feeds import Feed
from headrace.rest.push.hub import Hub, cancelled
from headrace.rest.push.requested import Formats, StreamRequest
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT = b":\n\n"


def event(entry: Entry, formats: Formats, position: str) -> bytes:
    return b"id: %b\ndata: %b\n\n" % (position.encode(), entry.shown(formats))


def parts(entry: Entry, formats: Formats, position: str) -> Iterator[bytes]:
    """A large event a bit at a time, so that no connection holds a copy of all of it."""
    yield b"id: %b\ndata: " % position.encode()
    shown = entry.shown(formats)
    for start in range(0, len(shown), PIECE_BYTES):
        yield shown[start : start + PIECE_BYTES]
    yield b"\n\n"


def heartbeat(position: str, last: str) -> bytes:
    """A comment; or an id without data, which sets a browser's last id and is no event."""
    return _HEARTBEAT if position == last else b"id: %b\n\n" % position.encode()


def end(error: HttpError) -> bytes:
    """The last event: why there are no more."""
    return b"event: end\ndata: %b\n\n" % msgspec.json.encode(body_of(error))


class EventStream(Response):
    """The answer of one client, until it goes, stalls, or something else ends it."""

    def __init__(
        self,
        feed: Feed,
        request: StreamRequest,
        schemas: Schemas,
        hub: Hub,
        settings: RestSettings,
    ) -> None:
        super().__init__(media_type=EVENT_STREAM, headers=_HEADERS)
        del self.headers["content-length"]
        self._feed = feed
        self._request = request
        self._pieces = Pieces(feed, request, schemas)
        self._hub = hub
        self._lifetime = Lifetime(
            settings.push_heartbeat_ms, settings.streaming_connection_max_duration_ms
        )
        self._stall_s = settings.push_stall_ms / 1000
        self._scope: Scope = {}
        self._last = ""
        self._is_within_event = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort = scope.get("state", {}).get(ABORT_KEY)
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._scope = scope
        delivering = asyncio.create_task(self._deliver(send, abort))
        self._hub.add_stream(delivering)
        gone = asyncio.create_task(until_gone(receive))
        try:
            await asyncio.wait({delivering, gone}, return_when=asyncio.FIRST_COMPLETED)
            is_gone = gone.done()
        finally:
            await cancelled(gone)
            await cancelled(delivering)
        if not is_gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _deliver(self, send: Send, abort: Callable[[], None] | None) -> None:
        """Send until something ends it; then say what, unless the client is beyond hearing."""
        try:
            await self._send(send, _HEARTBEAT)  # Proxies in between see the answer begin.
            while not self._lifetime.is_over:
                await self._send_piece(send, await self._pieces.next(self._lifetime.wait_s()))
        except Stalled as error:
            _log.warning("a client of %s is dropped: %s", self._request.topic, error)
            if abort is not None:
                abort()
        except HeadraceError as error:
            await self._send(send, end(of_client(error)))
        except asyncio.CancelledError:
            # The rest of an event that was cut would spoil the last one, and it comes again.
            if self._hub.is_stopping and not self._is_within_event:
                await self._send(send, end(stopping()))
            raise

    async def _send_piece(self, send: Send, piece: Piece) -> None:
        if piece.wanted:
            await self._send_events(send, piece.wanted)
            self._last = piece.wanted[-1][1]
            if self._request.group is not None:
                await sent(self._scope, self._stall_s)
        elif not piece.entries:
            await self._send(send, heartbeat(piece.position, self._last))
            self._last = piece.position
        for entry, _ in piece.entries:
            self._feed.delivered(entry.partition, entry.offset)

    async def _send_events(self, send: Send, wanted: list[tuple[Entry, str]]) -> None:
        formats = self._request.formats
        if len(wanted) == 1 and len(wanted[0][0].shown(formats)) > PIECE_BYTES:
            for part in parts(wanted[0][0], formats, wanted[0][1]):
                self._is_within_event = True
                await self._send(send, part)
            self._is_within_event = False
        else:
            await self._send(send, b"".join([event(one, formats, id) for one, id in wanted]))

    async def _send(self, send: Send, body: bytes) -> None:
        await taken(_drained(send, body), self._stall_s)


async def _drained(send: Send, body: bytes) -> None:
    """Send, and wait until the connection has room again.

    The server waits for room before it takes a message, not after. So an empty one is what waits,
    and nothing more is made for a client that does not read.
    """
    for one in (body, b""):
        await send({"type": "http.response.body", "body": one, "more_body": True})
