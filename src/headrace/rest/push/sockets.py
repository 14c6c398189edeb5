"""WebSocket: a stream as JSON messages, with acknowledgements if the client wants to give them.

To the client go `{"type": "record", ...}`, `{"type": "heartbeat", "position": "0:15"}` and, as the
last one, `{"type": "end", ...}` with what ended it. With `ack=client` it answers records by
`{"type": "ack", "partition": 0, "offset": 15}`, which covers the record and all before it in its
partition; only so much may be unacknowledged before nothing more is sent.
"""

import asyncio
import logging

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from headrace.errors import HeadraceError
from headrace.http.cors import foreign_origin
from headrace.http.errors import HttpError
from headrace.http.server import ABORT_KEY
from headrace.rest.errors import RestError, bad_request, body_of, of_client
from headrace.rest.push.acknowledgements import Acknowledgements
from headrace.rest.push.delivering import (
    Lifetime,
    Piece,
    Pieces,
    Stalled,
    over,
    sent,
    stopping,
    taken,
)
from headrace.rest.push.entries import Entry
from headrace.rest.push.feeds import Feed
from headrace.rest.push.hub import Hub, cancelled
from headrace.rest.push.requested import StreamRequest
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_ENDS = {400: 1008, 503: 1012}
_UNEXPECTED = 1011
_IDLE_S = 1.0


class Acknowledgement(msgspec.Struct, frozen=True, tag="ack"):
    """What a client may say."""

    partition: int
    offset: int


_DECODER = msgspec.json.Decoder(Acknowledgement)


def check_origin(websocket: WebSocket, origins: tuple[str, ...]) -> None:
    """Pages of other sites may not open sockets, which browsers leave to the server to forbid."""
    if foreign_origin(websocket.headers, origins) is not None:
        raise RestError(403, 403, "pages of this origin may not ask (access.control.allow.origin)")


class SocketStream:
    """One open socket and its feed."""

    def __init__(
        self,
        websocket: WebSocket,
        feed: Feed,
        request: StreamRequest,
        schemas: Schemas,
        settings: RestSettings,
    ) -> None:
        self._websocket = websocket
        self._feed = feed
        self._request = request
        self._pieces = Pieces(feed, request, schemas)
        self._lifetime = Lifetime(
            settings.push_heartbeat_ms, settings.streaming_connection_max_duration_ms
        )
        self._stall_s = settings.push_stall_ms / 1000
        self._acknowledgements = Acknowledgements(settings.push_unacknowledged_max)
        self._heard = asyncio.Event()

    async def run(self, hub: Hub) -> None:
        """Send and listen until one of both ends."""
        delivering = asyncio.create_task(self._deliver())
        hub.add_stream(delivering)
        listening = asyncio.create_task(self._listen())
        try:
            await asyncio.wait({delivering, listening}, return_when=asyncio.FIRST_COMPLETED)
            await self._tell_end(hub, delivering, listening)
        finally:
            await _ended(listening)
            await _ended(delivering)

    async def _deliver(self) -> None:
        while not self._lifetime.is_over:
            piece = await self._pieces.next(self._lifetime.wait_s())
            if self._request.acknowledges:
                await self._send_acknowledged(piece)
            else:
                await self._send_all(piece)
            if not piece.entries:
                text = {"type": "heartbeat", "position": piece.position}
                await self._send(msgspec.json.encode(text).decode())
        raise over()

    async def _send_all(self, piece: Piece) -> None:
        for entry, _ in piece.wanted:
            await self._send_record(entry)
        if self._request.group is not None and piece.wanted:
            await sent(self._websocket.scope, self._stall_s)
        for entry, _ in piece.entries:
            self._feed.delivered(entry.partition, entry.offset)

    async def _send_acknowledged(self, piece: Piece) -> None:
        wanted = {id(entry) for entry, _ in piece.wanted}
        for entry, _ in piece.entries:
            if id(entry) not in wanted:
                if self._acknowledgements.passed_over(entry.partition, entry.offset):
                    self._feed.delivered(entry.partition, entry.offset)
                continue
            await self._until_room()
            self._acknowledgements.sent(entry.partition, entry.offset)
            await self._send_record(entry)

    async def _until_room(self) -> None:
        """Wait for acknowledgements while too many are missing, but not forever."""
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        while self._acknowledgements.is_full:
            self._heard.clear()
            try:
                async with asyncio.timeout(_IDLE_S):
                    await self._heard.wait()
                heard_at = loop.time()
            except TimeoutError:
                if loop.time() - heard_at >= self._stall_s:
                    raise self._unheard() from None
                await self._feed.idle()

    def _unheard(self) -> RestError:
        return bad_request(
            f"nothing was acknowledged for {self._stall_s:g} seconds while"
            " push.unacknowledged.max records wait for it"
        )

    async def _send_record(self, entry: Entry) -> None:
        shown = entry.shown(self._request.formats)
        await self._send('{"type":"record",' + shown[1:].decode())

    async def _send(self, text: str) -> None:
        await taken(self._websocket.send_text(text), self._stall_s)

    async def _listen(self) -> None:
        while True:
            text = await self._websocket.receive_text()
            if not self._request.acknowledges:
                raise bad_request("nothing is expected from you; ack=client lets you acknowledge")
            self._acknowledge(text)
            self._heard.set()

    def _acknowledge(self, text: str) -> None:
        try:
            given = _DECODER.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise bad_request(
                f'the message is no acknowledgement, as {{"type":"ack","partition":0,"offset":15}}'
                f" is: {error}"
            ) from None
        last = self._acknowledgements.acknowledge(given.partition, given.offset)
        self._feed.delivered(given.partition, last)

    async def _tell_end(
        self, hub: Hub, delivering: "asyncio.Task[None]", listening: "asyncio.Task[None]"
    ) -> None:
        ended = listening if listening.done() else delivering
        failure = stopping() if ended.cancelled() else ended.exception()
        if isinstance(failure, Stalled):
            _log.warning("a client of %s is dropped: %s", self._request.topic, failure)
            abort = self._websocket.scope.get("state", {}).get(ABORT_KEY)
            if abort is not None:
                abort()
            return
        if failure is None or isinstance(failure, WebSocketDisconnect):
            return
        if not isinstance(failure, HeadraceError):
            _log.error("a stream of %s failed", self._request.topic, exc_info=failure)
            failure = HttpError("something is wrong on our side; the server's log says what")
        # What is being sent goes out whole before the last word.
        await _ended(delivering)
        await self._say_end(of_client(failure))

    async def _say_end(self, error: HttpError) -> None:
        body = {"type": "end", **msgspec.structs.asdict(body_of(error))}
        try:
            await self._send(msgspec.json.encode(body).decode())
            await self._websocket.close(_ENDS.get(error.status, _UNEXPECTED))
        except (WebSocketDisconnect, RuntimeError, Stalled):
            return  # Nobody is left to be told.


async def _ended(task: "asyncio.Task[None]") -> None:
    """The end of a task; how it ended was looked at, or is told by the other one's end."""
    try:
        await cancelled(task)
    except (HeadraceError, WebSocketDisconnect, RuntimeError):
        return
