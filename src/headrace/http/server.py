"""Runs an ASGI application in the process's own event loop until it is told to stop.

uvicorn does the protocol. What is ours: the socket is bound here, so that a taken port is an error
with a name and port 0 is known before anyone asks; signals are the loop's; logs are the process's.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from headrace.errors import HeadraceError
from headrace.http.addresses import ListenAddress
from headrace.http.errors import Render, rendered
from headrace.http.heads import BoundedProtocol, ServerConfig
from headrace.http.tls import CERTIFICATE_KEY, ServerTls, distinguished_name
from headrace.runtime.supervision import CANNOT_LISTEN

ABORT_KEY = "headrace.abort"
"""In the state of a request: ends its connection at once, without what is still to be sent."""
UNSENT_KEY = "headrace.unsent"
"""In the state of a request: how many bytes its connection holds that the system has not taken."""
_MESSAGE_BYTES_MAX = 1 << 20
"""What a client may send over a WebSocket at once."""
_BACKLOG = 512
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class CannotListen(HeadraceError):
    """The address is taken, or not this machine's."""

    exit_code = CANNOT_LISTEN


def bind(address: ListenAddress) -> socket.socket:
    """A listening socket; the port is the real one where 0 was asked for."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {address}: {error.strerror or error}") from error
    return listener


def event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
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
    on_ready: Callable[[ListenAddress], None],
    connections_max: int = 1_000,
    stop_s_max: int = 10,
    tls: ServerTls | None = None,
    has_websockets: bool = False,
    on_stop: Callable[[], None] | None = None,
    render: Render = rendered,
) -> None:
    """Answer requests until SIGINT or SIGTERM; those under way then have `stop_s_max` to end.

    `on_stop` is where answers without an end are ended. `render` gives what is refused before the
    application sees it the shape of the product's errors.
    """
    config = _config(app, connections_max, stop_s_max, tls, has_websockets=has_websockets)
    config.render = render
    server = _Server(
        config,
        lambda: on_ready(address_of(listener)),
        on_stop,
    )
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
    """The protocol, which lets requests end their connection and see what it still holds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {
            **self.app_state,
            ABORT_KEY: transport.abort,
            UNSENT_KEY: transport.get_write_buffer_size,
        }


class _TlsProtocol(_Protocol):
    """The same over TLS: it tells requests what certificate their client has shown."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        shown = transport.get_extra_info("peercert")
        if shown and (name := distinguished_name(shown)):
            self.app_state = {**self.app_state, CERTIFICATE_KEY: name}


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, which would raise the signal once more."""

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
        """End soon; a second call does not wait for requests that are under way."""
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
