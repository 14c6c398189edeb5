"""The data port: listening sockets, their connections, and the limits of both."""

import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from headrace.broker.connection import Connection
from headrace.broker.connection_rates import ConnectionRates
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.handshakes import Handshakes
from headrace.broker.ready_sockets import ReadySockets
from headrace.broker.server_limits import UNLIMITED, ServerLimits
from headrace.runtime.addresses import bound_socket, plain_host

if TYPE_CHECKING:
    import asyncio

    from headrace.broker.produce.rounds import ProduceRound
    from headrace.security.tls import ListenerTls

_log = logging.getLogger(__name__)

_ACCEPTS_PER_TURN = 64
_SWEEPS_UNTIL_IDLE = 4
_OUT_OF_DESCRIPTORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_ACCEPT_PAUSE_S = 0.2
_REFUSED_MAX = 1000


Dispatch = Callable[[Connection, Frames, int, int], None]
"""Serves a frame of a connection."""


class Gatekeeper(Protocol):
    """Serves the connections of one listener until they are logged in."""

    def admit(self, connection: Connection) -> None: ...


class Server:
    """Accepts and counts connections; `dispatch` serves their requests."""

    def __init__(
        self,
        loop: "asyncio.AbstractEventLoop",
        limits: ServerLimits,
        buffers: FrameBuffers,
        round_: "ProduceRound",
    ) -> None:
        self._loop = loop
        self._limits = limits
        self.rates = ConnectionRates(limits.quota_windows)
        self._dispatch: Dispatch
        self._gates: Mapping[str, Gatekeeper] = {}
        self._buffers = buffers
        self._take = round_.take
        self._ready = ReadySockets(loop, round_)
        self._sockets: dict[str, socket.socket] = {}
        self._tls: dict[str, ListenerTls] = {}
        self.handshakes = Handshakes(loop, self._handshake_ended)
        self._per_host: Counter[str] = Counter()
        self._held: set[str] = set()
        self._per_listener: Counter[str] = Counter()
        self._next_ms: dict[str, int] = {}
        """The times before which listeners accept no connection, because of their rates."""
        self._resuming: dict[str, asyncio.TimerHandle] = {}
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}
        """Connections beyond the rate of their address, which are closed after a while."""
        self._sweep: asyncio.TimerHandle | None = None
        self.on_disconnect: Callable[[Connection], None] | None = None
        self.connections: set[Connection] = set()
        self.accepted = 0
        self.refused = 0

    @property
    def limits(self) -> ServerLimits:
        return self._limits

    @limits.setter
    def limits(self, limits: ServerLimits) -> None:
        """Apply new limits to new connections; existing connections stay."""
        self._limits = limits
        self._limit_rates()
        self._accept_again()

    def _limit_rates(self) -> None:
        limits = self._limits
        rate = limits.max_connection_creation_rate
        of_listeners = limits.listener_max_connection_creation_rates
        self.rates.exempt_listener = limits.protected_listener
        self.rates.limit(None if rate == UNLIMITED else rate, of_listeners)

    def secure(self, listener: str, tls: "ListenerTls") -> None:
        """Serve a listener with TLS."""
        self._tls[listener] = tls

    def bind(self, listener: str, host: str, port: int) -> tuple[str, int]:
        """Bind an address without serving it yet; port 0 takes any that is free."""
        sock, bound_port = bound_socket(host, port)
        self._sockets[listener] = sock
        return str(sock.getsockname()[0]), bound_port

    def start(self, dispatch: Dispatch, gates: "Mapping[str, Gatekeeper] | None" = None) -> None:
        """Accept clients, and have each of their requests served by `dispatch`.

        Connections of a listener with a gate are served by the gate until they are logged in.
        """
        self._dispatch = dispatch
        self._gates = gates or {}
        self._limit_rates()
        for listener, sock in self._sockets.items():
            sock.listen(self._limits.socket_listen_backlog_size)
            self._loop.add_reader(sock.fileno(), self._accept, listener, sock)
        self._plan_sweep()

    def stop(self) -> None:
        """Accept no more connections and close the existing ones."""
        if self._sweep is not None:
            self._sweep.cancel()
        self.handshakes.close()
        for sock in self._sockets.values():
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()
        for resume in self._resuming.values():
            resume.cancel()
        for client in list(self._refused):
            self._close_refused(client)
        for connection in list(self.connections):
            connection.close()
        self._ready.close()

    def _accept(self, listener: str, sock: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if not self._has_room(listener, sock):
                return
            try:
                client, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause_accepting(listener, sock, error)
                return
            peer = plain_host(str(address[0])), int(address[1])
            delay_ms = self.rates.accepted(listener, self._now_ms())
            refusal_ms = self.rates.refusal_ms(listener, peer[0], self._now_ms())
            if refusal_ms:
                self._refuse_later(client, refusal_ms)
                continue
            self._admit(listener, client, peer)
            if delay_ms:
                self._next_ms[listener] = self._now_ms() + delay_ms

    def _has_room(self, listener: str, sock: socket.socket) -> bool:
        """Return whether a connection may be accepted now; others wait in the kernel's queue."""
        if self._is_full(listener):
            _log.warning(
                "max.connections reached, accepting no connections", extra={"listener": listener}
            )
            self._hold(listener, sock)  # Until a connection is closed.
            return False
        if listener in self._tls and not self.handshakes.has_room(listener):
            self._hold(listener, sock)  # Until a handshake ends.
            return False
        wait_ms = self._next_ms.get(listener, 0) - self._now_ms()
        if wait_ms <= 0:
            return True
        self._hold(listener, sock)
        if listener not in self._resuming:
            resume = self._loop.call_later(wait_ms / 1000, self._resume, listener)
            self._resuming[listener] = resume
        return False

    def _resume(self, listener: str) -> None:
        del self._resuming[listener]
        self._accept_again()

    def _is_full(self, listener: str) -> bool:
        limits = self._limits
        of_listener = limits.listener_max_connections.get(listener)
        if of_listener is not None and self._per_listener[listener] >= of_listener:
            return True
        if listener == limits.protected_listener:
            return False
        return len(self.connections) >= limits.max_connections

    def _refuse_later(self, client: socket.socket, delay_ms: int) -> None:
        """Close a connection without reading it; a client that is closed at once comes again."""
        self.refused += 1
        if len(self._refused) >= _REFUSED_MAX:
            client.close()
            return
        self._refused[client] = self._loop.call_later(delay_ms / 1000, self._close_refused, client)

    def _close_refused(self, client: socket.socket) -> None:
        self._refused.pop(client).cancel()
        client.close()

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _pause_accepting(self, listener: str, sock: socket.socket, error: OSError) -> None:
        """Pause when descriptors run out: accept() would fail at once, and spin."""
        if error.errno not in _OUT_OF_DESCRIPTORS:
            raise error
        _log.warning(
            "out of file descriptors, accepting no connections",
            extra={"listener": listener, "error": error.strerror},
        )
        self._hold(listener, sock)
        self._loop.call_later(_ACCEPT_PAUSE_S, self._accept_again)

    def _hold(self, listener: str, sock: socket.socket) -> None:
        self._loop.remove_reader(sock.fileno())
        self._held.add(listener)

    def _accept_again(self) -> None:
        for listener in self._held & self._sockets.keys():
            sock = self._sockets[listener]
            self._loop.add_reader(sock.fileno(), self._accept, listener, sock)
        self._held.clear()

    def _admit(self, listener: str, client: socket.socket, peer: tuple[str, int]) -> None:
        limits = self._limits
        host = peer[0]
        if self._per_host[host] >= limits.connections_of(host):
            _log.warning("max.connections.per.ip reached, connection refused", extra={"host": host})
            self.refused += 1
            client.close()
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if limits.socket_send_buffer_bytes > 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.socket_send_buffer_bytes)
        if limits.socket_receive_buffer_bytes > 0:
            client.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, limits.socket_receive_buffer_bytes
            )
        connection = self._connection(client, peer, listener)
        if connection is None:
            return
        if (gate := self._gates.get(listener)) is not None:
            gate.admit(connection)
        self.connections.add(connection)
        self._per_host[host] += 1
        self._per_listener[listener] += 1
        self.accepted += 1

    def _connection(
        self, client: socket.socket, peer: tuple[str, int], listener: str
    ) -> Connection | None:
        """Return a connection of the listener's kind; None if its client is already gone."""
        tls = self._tls.get(listener)
        if tls is not None:
            return self._tls_connection(client, peer, listener, tls)
        return Connection(
            client,
            peer,
            listener,
            loop=self._loop,
            ready=self._ready,
            buffers=self._buffers,
            take=self._take,
            dispatch=self._dispatch,
            on_close=self._forget,
        )

    def _tls_connection(
        self, client: socket.socket, peer: tuple[str, int], listener: str, tls: "ListenerTls"
    ) -> Connection | None:
        """Return a connection that begins a handshake."""
        from headrace.broker.tls_connection import TlsConnection  # Only TLS needs OpenSSL.

        try:
            secured = tls.server.wrap_socket(
                client, server_side=True, do_handshake_on_connect=False
            )
        except OSError:
            client.close()
            return None
        return TlsConnection(
            secured,
            peer,
            listener,
            handshakes=self.handshakes,
            principal_of=tls.principal_of,
            loop=self._loop,
            ready=self._ready,
            buffers=self._buffers,
            take=self._take,
            dispatch=self._dispatch,
            on_close=self._forget,
        )

    def _handshake_ended(self) -> None:
        if self._held:
            self._accept_again()

    def _forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._per_listener[connection.listener] -= 1
        self._per_host[connection.host] -= 1
        if not self._per_host[connection.host]:
            del self._per_host[connection.host]
        if self._held:
            self._accept_again()
        if self.on_disconnect is not None:
            self.on_disconnect(connection)

    def _plan_sweep(self) -> None:
        if self._limits.connections_max_idle_ms > 0:
            interval_s = self._limits.connections_max_idle_ms / 1000 / _SWEEPS_UNTIL_IDLE
            self._sweep = self._loop.call_later(interval_s, self._close_idle)

    def _close_idle(self) -> None:
        for connection in swept(self.connections):
            _log.info("idle connection closed", extra={"connection": connection.peer})
            connection.close()
        self._plan_sweep()


def swept(connections: Iterable[Connection]) -> list[Connection]:
    """Return the connections without a completed request in several sweeps and none under way.

    An incomplete frame is no activity: a client that sends a byte a minute is idle.
    """
    idle = []
    for connection in connections:
        if connection.is_active or connection.is_waiting:
            connection.is_active = False
            connection.idle_sweeps = 0
            continue
        connection.idle_sweeps += 1
        if connection.idle_sweeps >= _SWEEPS_UNTIL_IDLE:
            idle.append(connection)
    return idle
