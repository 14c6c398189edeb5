"""Bound the size and the time of request heads, and the number of connections.

The head of a request (its first line and its headers) is held in memory before an application can
refuse it. uvicorn's protocol bounds neither its size nor its time. This protocol counts the bytes
since the parser last reported a head or a part of a body, which bounds trailers too, and closes
connections whose head stays incomplete. A request that arrives in one piece sets no timer.

At the maximum of connections, a new one replaces the connection that has been idle for longest:
first among those with an incomplete head, then among those between two requests.
"""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, cast

import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from headrace.http.errors import BadRequest, HttpError, Render, Unavailable, rendered

HEAD_BYTES_MAX = 1 << 16
HEAD_SECONDS_MAX = 10
_LINGER_SECONDS = 1
"""The time until a refused connection is closed: closed at once, the client would see no answer."""
_AROUND_HEADER = len(": \r\n")
_JOINED_BYTES_MAX = 1 << 16
"""Larger bodies are written separately: copying them would cost more than it saves."""


class HeadTooLarge(HttpError):
    status = 431
    error = "head_too_large"


class IdleConnections:
    """The connections of a server without a request under way, the longest idle first."""

    def __init__(self) -> None:
        self.without_head: dict[BoundedProtocol, None] = {}
        """Connections whose request head is incomplete."""
        self.between_requests: dict[BoundedProtocol, None] = {}

    def leave(self, one: "BoundedProtocol") -> None:
        self.without_head.pop(one, None)
        self.between_requests.pop(one, None)

    def longest(self) -> "BoundedProtocol | None":
        return next(iter(self.without_head), next(iter(self.between_requests), None))


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, the shape of a product's errors, and the idle connections."""

    render: Render = staticmethod(rendered)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle = IdleConnections()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds on heads, and refusals in the product's own shape."""

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._render = config.render
        self._idle = config.idle
        # Counted here, because uvicorn's own refusal is plain text.
        self._connections_max, self.limit_concurrency = self.limit_concurrency, None
        self._bytes_unparsed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_done = False
        """Set when nothing more is read here: after a refusal or the upgrade to a WebSocket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._is_crowded():
            self._make_room()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._idle.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_done:
            self._idle.between_requests.pop(self, None)
            self._bytes_unparsed += len(data)
            super().data_received(data)
            self._check_head()

    def on_headers_complete(self) -> None:
        is_suspect = self._bytes_unparsed > HEAD_BYTES_MAX  # May include a part of the body.
        if is_suspect and head_bytes(self.url, self.headers) > HEAD_BYTES_MAX:
            raise _too_large()  # Ends the parser; `_check_head` answers the client.
        self._bytes_unparsed = 0
        self._end_wait()
        self.app = self._unavailable if self._is_full() else self.config.loaded_app
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before and self.scope["method"] != "HEAD":
            self.cycle.transport = joined(self.transport, self.loop)

    def on_body(self, body: bytes) -> None:
        self._bytes_unparsed = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # The next request may be under way already, or the connection may be closing.
        if self.cycle.response_complete and not self._is_done and not self.transport.is_closing():
            self._idle.between_requests[self] = None

    def handle_websocket_upgrade(self) -> None:
        self._is_done = True
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Called when the parser fails; a head that is too large ends the parser as well."""
        if self._bytes_unparsed <= HEAD_BYTES_MAX:
            self._refuse(BadRequest("invalid HTTP/1.1 request"))

    def _check_head(self) -> None:
        """Run after received bytes were parsed."""
        if self._is_done:
            return
        if self._bytes_unparsed > HEAD_BYTES_MAX:
            self._refuse(_too_large())
        elif self.cycle is None or self.cycle.response_complete:
            self._await_head()

    def _is_crowded(self) -> bool:
        return self._connections_max is not None and len(self.connections) >= self._connections_max

    def _is_full(self) -> bool:
        most = self._connections_max
        return self._is_crowded() or (most is not None and len(self.tasks) >= most)

    def _make_room(self) -> None:
        """Close the longest idle connection: idle connections must not lock out new ones."""
        longest = self._idle.longest()
        if longest is not None:
            self._idle.leave(longest)
            self.connections.discard(longest)  # At once: the loop reports its end only later.
            longest.transport.close()

    async def _unavailable(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._render(Unavailable("the server has reached its maximum of connections"))
        response.headers["Connection"] = "close"
        await response(scope, receive, send)

    def _await_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS_MAX, self.transport.close)
            self._idle.without_head[self] = None

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._idle.without_head.pop(self, None)

    def _refuse(self, error: HttpError) -> None:
        """Send the last answer of this connection; drop further input unread."""
        self._is_done = True
        self._end_wait()
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # This refusal must not end up within another answer.
            return
        self.transport.write(answer_bytes(self._render(error)))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)


def head_bytes(url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the size of a head without its method and version."""
    return len(url) + sum(len(name) + len(value) + _AROUND_HEADER for name, value in headers)


def answer_bytes(response: Response) -> bytes:
    """Return the bytes of an answer that no application made."""
    status = HTTPStatus(response.status_code)
    lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode())]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(response.body)])


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"the address and the headers are larger than {HEAD_BYTES_MAX} bytes; send fewer"
    )


def joined(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> asyncio.Transport:
    """Return a transport for one answer that sends its head and its body in one piece."""
    return cast(asyncio.Transport, _JoinedWrites(transport, loop))


class _JoinedWrites:
    """Holds the first write back until the next one, or until the loop's next iteration.

    uvicorn writes head and body separately, and the loop sends each at once: two system calls,
    and a client that wakes up for the head only to wait for the body. This class has just the
    methods that uvicorn's request cycle calls.
    """

    __slots__ = ("_head", "_later", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._later: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        if self._later is None:
            self._head, self._later = data, self._loop.call_soon(self._flush)
        elif self._head is None or len(data) > _JOINED_BYTES_MAX:
            self._flush()
            self._transport.write(data)
        else:
            self._later.cancel()
            head, self._head = self._head, None
            self._transport.write(head + data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            if self._later is not None:
                self._later.cancel()
            if not self._transport.is_closing():
                self._transport.write(head)
