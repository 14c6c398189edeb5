"""Serve an ASGI application in the process's own event loop until a signal stops it.

uvicorn implements HTTP. The socket is bound here, so that a taken port is a named error and the
port chosen for 0 is known early. Signals are handled by the loop, logs are the process's.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from headrace.errors import CannotListen
from headrace.http.addresses import ListenAddress
from headrace.http.errors import Render, rendered
from headrace.http.heads import BoundedProtocol, ServerConfig
from headrace.http.tls import CERTIFICATE_KEY, ServerTls, distinguished_name

ABORT_KEY = "headrace.abort"
"""In the state of a request: ends its connection at once, dropping unsent bytes."""
UNSENT_KEY = "headrace.unsent"
"""In the state of a request: the bytes that its connection has not passed to the system yet."""
_MESSAGE_BYTES_MAX = 1 << 20
"""The largest message of a client over a WebSocket."""
_BACKLOG = 512
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def bind(address: ListenAddress) -> socket.socket:
    """Return a listening socket; port 0 takes any free port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise CannotListen(str(address), error) from error
    return listener


def event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def address_of(listener: socket.socket) -> ListenAddress:
    host, port = listener.getsockname()[:2]
    return ListenAddress(str(host), int(port))


async def serve(
    app: ASGIApp,
    listener: socket.socket,
    *,
    on_ready: Callable[[], None],
    connections_max: int = 1_000,
    stop_s_max: int = 10,
    tls: ServerTls | None = None,
    has_websockets: bool = False,
    on_stop: Callable[[], None] | None = None,
    render: Render = rendered,
) -> None:
    """Answer requests until SIGINT or SIGTERM; those under way then have `stop_s_max` to end.

    `on_stop` ends answers that have no end. `render` makes the answers to requests that are
    refused before the application sees them.
    """
    config = _config(app, connections_max, stop_s_max, tls, has_websockets=has_websockets)
    config.render = render
    server = _Server(config, on_ready, on_stop)
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, server.stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
        listener.close()


def _config(
    app: ASGIApp,
    connections_max: int,
    stop_s_max: int,
    tls: ServerTls | None,
    *,
    has_websockets: bool,
) -> ServerConfig:
    config = ServerConfig(
        app,
        http=_Protocol if tls is None else _TlsProtocol,
        ws="wsproto" if has_websockets else "none",
        ws_max_size=_MESSAGE_BYTES_MAX,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections_max,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=stop_s_max,
    )
    if tls is not None:
        context = tls.context()
        config.ssl_context_factory = lambda _config, _default: context
    return config


class _Protocol(BoundedProtocol):
    """Gives requests access to their connection: to end it, and to see its unsent bytes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {
            **self.app_state,
            ABORT_KEY: transport.abort,
            UNSENT_KEY: transport.get_write_buffer_size,
        }


class _TlsProtocol(_Protocol):
    """Adds the subject of the client's certificate to requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        shown = transport.get_extra_info("peercert")
        if shown and (name := distinguished_name(shown)):
            self.app_state = {**self.app_state, CERTIFICATE_KEY: name}


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, which would raise the signal again."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None] | None,
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

    def stop(self) -> None:
        """End gracefully; a second call does not wait for requests under way."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self._on_stop is not None:
            self._on_stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
