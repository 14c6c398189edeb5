"""WebSocket: a stream as JSON messages, optionally with acknowledgements.

The client gets `{"type": "record", ...}`, `{"type": "heartbeat", "position": "0:15"}` and, as the
last message, `{"type": "end", ...}` with the reason. With `ack=client` it acknowledges records by
`{"type": "ack", "partition": 0, "offset": 15}`, which covers all records of the partition up to the
offset. A limit on unacknowledged records pauses the stream.
"""

import asyncio
import logging

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from headrace.errors import HeadraceError
from headrace.http.cors import foreign_origin
from headrace.http.errors import HttpError
from headrace.http.streams import Stalled, cancelled, disconnect, sent, taken
from headrace.rest.errors import RestError, bad_request, body_of, of_client
from headrace.rest.push.acknowledgements import Acknowledgements
from headrace.rest.push.delivering import Lifetime, Piece, Pieces, over, stopping
from headrace.rest.push.entries import Entry
from headrace.rest.push.feeds import Feed
from headrace.rest.push.hub import Hub
from headrace.rest.push.requested import StreamRequest
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_ENDS = {400: 1008, 503: 1012}
_UNEXPECTED = 1011
_IDLE_S = 1.0


class Acknowledgement(msgspec.Struct, frozen=True, tag="ack"):
    """A message of a client."""

    partition: int
    offset: int


_DECODER = msgspec.json.Decoder(Acknowledgement)


def check_origin(websocket: WebSocket, origins: tuple[str, ...]) -> None:
    """Reject pages of other sites, because browsers do not restrict WebSockets."""
    if foreign_origin(websocket.headers, origins) is not None:
        raise RestError(403, 403, "this origin is not allowed (access.control.allow.origin)")


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
        self._acknowledged = asyncio.Event()

    async def run(self, hub: Hub) -> None:
        """Send and receive until either ends."""
        delivering = asyncio.create_task(self._deliver())
        hub.streams.add(delivering)
        listening = asyncio.create_task(self._listen())
        try:
            await asyncio.wait({delivering, listening}, return_when=asyncio.FIRST_COMPLETED)
            await self._report_end(delivering, listening)
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
        """Wait for acknowledgements while too many are missing, up to a time limit."""
        loop = asyncio.get_running_loop()
        acknowledged_at = loop.time()
        while self._acknowledgements.is_full:
            self._acknowledged.clear()
            try:
                async with asyncio.timeout(_IDLE_S):
                    await self._acknowledged.wait()
                acknowledged_at = loop.time()
            except TimeoutError:
                if loop.time() - acknowledged_at >= self._stall_s:
                    raise self._unacknowledged() from None
                await self._feed.idle()

    def _unacknowledged(self) -> RestError:
        return bad_request(
            f"nothing was acknowledged for {self._stall_s:g} seconds although"
            " push.unacknowledged.max records are unacknowledged"
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
                raise bad_request("messages are accepted with ack=client only")
            self._acknowledge(text)
            self._acknowledged.set()

    def _acknowledge(self, text: str) -> None:
        try:
            given = _DECODER.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise bad_request(
                'not an acknowledgement such as {"type":"ack","partition":0,"offset":15}'
                f": {error}"
            ) from None
        last = self._acknowledgements.acknowledge(given.partition, given.offset)
        self._feed.delivered(given.partition, last)

    async def _report_end(
        self, delivering: "asyncio.Task[None]", listening: "asyncio.Task[None]"
    ) -> None:
        ended = listening if listening.done() else delivering
        failure = stopping() if ended.cancelled() else ended.exception()
        if isinstance(failure, Stalled):
            disconnect(self._websocket.scope, failure, {"topic": self._request.topic})
            return
        if failure is None or isinstance(failure, WebSocketDisconnect):
            return
        if not isinstance(failure, HeadraceError):
            _log.error("stream failed", extra={"topic": self._request.topic}, exc_info=failure)
            failure = HttpError("internal error; see the log of the server")
        # Complete the message in progress before the last one.
        await _ended(delivering)
        await self._send_end(of_client(failure))

    async def _send_end(self, error: HttpError) -> None:
        body = {"type": "end", **msgspec.structs.asdict(body_of(error))}
        try:
            await self._send(msgspec.json.encode(body).decode())
            await self._websocket.close(_ENDS.get(error.status, _UNEXPECTED))
        except (WebSocketDisconnect, RuntimeError, Stalled):
            return  # The client has disconnected.


async def _ended(task: "asyncio.Task[None]") -> None:
    """End a task; its error is reported elsewhere."""
    try:
        await cancelled(task)
    except (HeadraceError, WebSocketDisconnect, RuntimeError):
        return
