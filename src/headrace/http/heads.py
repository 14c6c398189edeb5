"""What a connection may cost before anybody knows whose it is: a head has a size and a time.

The head of a request (its first line and its headers) is held in memory before an application can
refuse it, so it is bounded here. uvicorn's protocol bounds neither; this one counts what has come
since the parser last told of a head or a part of a body, which bounds trailers too, and closes
connections that do not bring a head to its end. A request that arrives in one piece sets no timer.

There are only so many connections. Where a new one finds no room, the one goes that has been silent
for longest: of those that owe a head first, else of those that wait between two requests.
"""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from headrace.http.errors import BadRequest, HttpError, Render, Unavailable, rendered
from headrace.http.joined_writes import joined

HEAD_BYTES_MAX = 1 << 16
HEAD_SECONDS_MAX = 10
_LINGER_SECONDS = 1
"""How long a refused client may go on sending: closed at once, it would see no answer."""
_AROUND_HEADER = len(": \r\n")


class HeadTooLarge(HttpError):
    status = 431
    error = "head_too_large"


class Silent:
    """The connections of a server of which nothing is under way, the longest silent first."""

    def __init__(self) -> None:
        self.without_head: dict[BoundedProtocol, None] = {}
        """Those that have not brought the head of a request to its end."""
        self.between_requests: dict[BoundedProtocol, None] = {}

    def leave(self, one: "BoundedProtocol") -> None:
        self.without_head.pop(one, None)
        self.between_requests.pop(one, None)

    def longest(self) -> "BoundedProtocol | None":
        return next(iter(self.without_head), next(iter(self.between_requests), None))


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, the shape of a product's errors, and who is silent on its server."""

    render: Render = staticmethod(rendered)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.silent = Silent()


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
        self._silent = config.silent
        # Counted here, as uvicorn's own refusal is plain text.
        self._connections_max, self.limit_concurrency = self.limit_concurrency, None
        self._bytes_untold = 0
        self._too_late: asyncio.TimerHandle | None = None
        self._is_done = False
        """Whether nothing is read here any more: refused, or a WebSocket by now."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._is_crowded():
            self._make_room()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._silent.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_done:
            self._silent.between_requests.pop(self, None)
            self._bytes_untold += len(data)
            super().data_received(data)
            self._look_at_head()

    def on_headers_complete(self) -> None:
        is_suspect = self._bytes_untold > HEAD_BYTES_MAX  # A body may have come along.
        if is_suspect and head_bytes(self.url, self.headers) > HEAD_BYTES_MAX:
            raise _too_large()  # The parser ends with it; `_look_at_head` tells the client.
        self._bytes_untold = 0
        self._end_wait()
        self.app = self._unavailable if self._is_full() else self.config.loaded_app
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before and self.scope["method"] != "HEAD":
            self.cycle.transport = joined(self.transport, self.loop)

    def on_body(self, body: bytes) -> None:
        self._bytes_untold = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Another request may be under way already, or the connection at its end.
        if self.cycle.response_complete and not self._is_done and not self.transport.is_closing():
            self._silent.between_requests[self] = None

    def handle_websocket_upgrade(self) -> None:
        self._is_done = True
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Called where the parser gives up; a head that is too large ends it as well."""
        if self._bytes_untold <= HEAD_BYTES_MAX:
            self._refuse(BadRequest("this is no request of HTTP/1.1"))

    def _look_at_head(self) -> None:
        """After what has come was parsed."""
        if self._is_done:
            return
        if self._bytes_untold > HEAD_BYTES_MAX:
            self._refuse(_too_large())
        elif self.cycle is None or self.cycle.response_complete:
            self._await_head()

    def _is_crowded(self) -> bool:
        return self._connections_max is not None and len(self.connections) >= self._connections_max

    def _is_full(self) -> bool:
        most = self._connections_max
        return self._is_crowded() or (most is not None and len(self.tasks) >= most)

    def _make_room(self) -> None:
        """Silence costs nothing, so whoever makes connections must not keep others out by it."""
        longest = self._silent.longest()
        if longest is not None:
            self._silent.leave(longest)
            self.connections.discard(longest)  # Now, as the loop tells of its end only later.
            longest.transport.close()

    async def _unavailable(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._render(Unavailable("the server has as many connections as it may have"))
        response.headers["Connection"] = "close"
        await response(scope, receive, send)

    def _await_head(self) -> None:
        if self._too_late is None:
            self._too_late = self.loop.call_later(HEAD_SECONDS_MAX, self.transport.close)
            self._silent.without_head[self] = None

    def _end_wait(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None
            self._silent.without_head.pop(self, None)

    def _refuse(self, error: HttpError) -> None:
        """The last answer of this connection; what still comes is dropped unread."""
        self._is_done = True
        self._end_wait()
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # Another answer is under way, and ours is not its middle.
            return
        self.transport.write(answer_bytes(self._render(error)))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._too_late = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)


def head_bytes(url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int:
    """How large a head is, but for its method and version."""
    return len(url) + sum(len(name) + len(value) + _AROUND_HEADER for name, value in headers)


def answer_bytes(response: Response) -> bytes:
    """An answer as it is sent where no application has been asked."""
    status = HTTPStatus(response.status_code)
    lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode())]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(response.body)])


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"the address and the headers of a request may have {HEAD_BYTES_MAX} bytes; send fewer"
    )
