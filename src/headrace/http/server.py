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

_BACKLOG = 512
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class CannotListen(HeadraceError):
    """The address is taken, or not this machine's."""


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
) -> None:
    """Answer requests until SIGINT or SIGTERM; those under way then have `stop_s_max` to end."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
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
    server = _Server(config, lambda: on_ready(address_of(listener)))
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, server.stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
        listener.close()


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, which would raise the signal once more."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    def stop(self) -> None:
        """End soon; a second call does not wait for requests that are under way."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
