"""Answers in pieces: made while the request is still being read, or server-sent events.

A stream of events ends when its source ends, the client disconnects or stops reading, or the server
stops. It never buffers more than one block of events for a client that does not read.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.http.bodies import until_gone
from headrace.http.errors import TookTooLong
from headrace.http.server import ABORT_KEY, UNSENT_KEY

T = TypeVar("T")

_log = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
HEARTBEAT = b":\n\n"
"""A comment; proxies close silent connections."""
PART_BYTES = 64 << 10
"""Maximum size of one send, which each connection may buffer."""
_EVENT_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_LOOK_S = 0.005


class DuplexResponse(Response):
    """An answer in pieces that leaves the request's body to the maker of the pieces.

    Starlette's own streaming response reads the connection to notice a disconnect, and so would
    take parts of a body that is still being read.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(media_type=media_type, headers=headers)
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._pieces) as pieces:  # Also after a disconnect.
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def event(data: bytes, id: str = "", *, name: str = "") -> bytes:
    """Encode an event; a browser that reconnects sends the last `id` as `Last-Event-ID`."""
    assert id.isprintable(), "one line"
    assert name.isprintable(), "one line"
    head = b"id: %b\n" % id.encode() if id else b""
    if name:
        head = b"event: %b\n%b" % (name.encode(), head)
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(data.splitlines())
    return b"%bdata: %b\n\n" % (head, data)


async def with_heartbeats(
    events: AsyncIterator[bytes], heartbeat_s: float = 15.0
) -> AsyncGenerator[bytes, None]:
    """Yield events as they arrive, and comments while there are none."""
    coming = asyncio.ensure_future(_next(events))
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=heartbeat_s)
            if not done:
                yield HEARTBEAT
            elif (found := coming.result()) is None:
                return
            else:
                yield found
                coming = asyncio.ensure_future(_next(events))
    finally:
        coming.cancel()
        await asyncio.wait([coming])
        if isinstance(events, AsyncGenerator):
            await events.aclose()


class EventStreams:
    """The open streams of a product; `stop` ends them, since they have no end of their own."""

    def __init__(self, stall_s: float = 30.0) -> None:
        self.is_stopping = False
        self._stall_s = stall_s
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, task: "asyncio.Task[None]") -> None:
        """Register the task of another kind of stream, which `stop` cancels."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        self.is_stopping = True
        for task in self._tasks:
            task.cancel()

    async def ended(self, timeout_s: float) -> None:
        """Wait for the end of all streams."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)

    def answer(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        last: bytes = b"",
        context: Mapping[str, object] | None = None,
    ) -> Response:
        """Answer with encoded events, one or more whole ones at a time.

        `last` is sent if the server stops; `context` is logged if the client stops reading.
        """
        return _EventStream(self, events, self._stall_s, last, context or {})


class _EventStream(Response):
    def __init__(
        self,
        streams: EventStreams,
        events: AsyncGenerator[bytes, None],
        stall_s: float,
        last: bytes,
        context: Mapping[str, object],
    ) -> None:
        super().__init__(media_type=EVENT_STREAM, headers=_EVENT_HEADERS)
        del self.headers["content-length"]
        self._streams = streams
        self._events = events
        self._stall_s = stall_s
        self._last = last
        self._context = context
        self._is_within_event = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send_events(scope, send))
        self._streams.add(sending)
        gone = asyncio.create_task(until_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            is_gone = gone.done()
        finally:
            await cancelled(gone)
            await cancelled(sending)  # Raises an error of the source.
        if not is_gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_events(self, scope: Scope, send: Send) -> None:
        try:
            await self._send(send, HEARTBEAT)  # Makes proxies forward the head.
            async with aclosing(self._events) as events:
                async for block in events:
                    await self._send(send, block)
        except Stalled as error:
            disconnect(scope, error, self._context)
        except asyncio.CancelledError:
            # After a truncated event, a last event would be invalid.
            if self._streams.is_stopping and self._last and not self._is_within_event:
                await self._send(send, self._last)
            raise

    async def _send(self, send: Send, block: bytes) -> None:
        """Send a block in parts, so that the connection does not buffer all of a large one."""
        if len(block) <= PART_BYTES:
            await _drained(send, block, self._stall_s)
            return
        self._is_within_event = True
        for start in range(0, len(block), PART_BYTES):
            await _drained(send, block[start : start + PART_BYTES], self._stall_s)
        self._is_within_event = False


class Stalled(TookTooLong):
    """The client does not read, so it cannot receive an error either."""


async def taken(sending: Awaitable[T], stall_s: float) -> T:
    """Await a send; raise `Stalled` if the client does not read in time."""
    try:
        async with asyncio.timeout(stall_s):
            return await sending
    except TimeoutError:
        raise _stalled(stall_s) from None


async def sent(scope: Scope, stall_s: float) -> None:
    """Wait until the operating system has accepted all bytes of a connection.

    Bytes in our buffers are lost with the connection, so they must not count as delivered.
    """
    unsent: Callable[[], int] | None = scope.get("state", {}).get(UNSENT_KEY)
    if unsent is not None:
        await asyncio.sleep(0)  # The loop writes at the end of its turn.
        await taken(_emptied(unsent), stall_s)


def disconnect(scope: Scope, error: Stalled, context: Mapping[str, object]) -> None:
    """End the connection of a stalled client at once, dropping unsent bytes."""
    _log.warning("stalled client of a stream disconnected", extra={**context, "error": str(error)})
    abort: Callable[[], None] | None = scope.get("state", {}).get(ABORT_KEY)
    if abort is not None:
        abort()


async def cancelled(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait for its end; another error of the task is raised."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def _drained(send: Send, body: bytes, stall_s: float) -> None:
    """Send, and wait until the connection has room again.

    The server waits for room before it accepts a message, so a second, empty message waits. Nothing
    more is encoded for a client that does not read.
    """
    try:
        async with asyncio.timeout(stall_s):
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
    except TimeoutError:
        raise _stalled(stall_s) from None


def _stalled(stall_s: float) -> Stalled:
    return Stalled(f"the client has read nothing for {stall_s:g} seconds")


async def _emptied(unsent: Callable[[], int]) -> None:
    while unsent():
        await asyncio.sleep(_LOOK_S)


async def _next(events: AsyncIterator[bytes]) -> bytes | None:
    return await anext(events, None)
