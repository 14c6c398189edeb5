"""The data port: listening sockets, the connections that they gave, and their limits."""

import errno
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from headrace.broker.connection import Connection
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.broker.ready_sockets import ReadySockets
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    import asyncio

    from headrace.broker.produce_rounds import ProduceRound

_log = logging.getLogger(__name__)

_ACCEPTS_PER_TURN = 64
_SWEEPS_UNTIL_IDLE = 4
_OUT_OF_DESCRIPTORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_ACCEPT_PAUSE_S = 0.2
_INT_MAX = (1 << 31) - 1


class CannotListen(HeadraceError):
    """An address is taken or not ours; `config_name` is the property that asks for it."""

    def __init__(self, host: str, port: int, reason: str, config_name: str = "listeners") -> None:
        super().__init__(f"{config_name}: cannot listen on {host}:{port}, {reason}")
        self.config_name = config_name


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one node grants its clients, under Kafka's property names."""

    socket_request_max_bytes: int = 100 << 20
    socket_send_buffer_bytes: int = -1
    socket_receive_buffer_bytes: int = -1
    connections_max_idle_ms: int = 600_000
    socket_listen_backlog_size: int = 1024
    max_connections: int = _INT_MAX
    max_connections_per_ip: int = _INT_MAX
    max_connections_per_ip_overrides: Mapping[str, int] = {}
    max_connection_creation_rate: int = _INT_MAX

    def connections_of(self, host: str) -> int:
        """How many connections one address may hold."""
        return self.max_connections_per_ip_overrides.get(host, self.max_connections_per_ip)


class Pace:
    """How many connections were taken in this second."""

    __slots__ = ("_second", "taken")

    def __init__(self) -> None:
        self._second = 0
        self.taken = 0

    def wait_s(self, now_s: float, rate: int) -> float:
        """How long the next connection has to wait; 0 means that it may come."""
        second = int(now_s)
        if second != self._second:
            self._second, self.taken = second, 0
        return 0.0 if self.taken < rate else second + 1 - now_s


class Server:
    """Accepts clients and keeps count of them; what they ask is `dispatch`'s business."""

    def __init__(
        self,
        loop: "asyncio.AbstractEventLoop",
        limits: ServerLimits,
        dispatch: Callable[[Connection, Frames, int, int], None],
        buffers: FrameBuffers,
        round_: "ProduceRound",
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._dispatch = dispatch
        self._buffers = buffers
        self._gather = round_.take
        self._ready = ReadySockets(loop, round_)
        self._sockets: dict[str, socket.socket] = {}
        self._per_host: Counter[str] = Counter()
        self._held: set[str] = set()
        self._pace = Pace()
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
        """Limits count for connections to come; those there are may stay."""
        self._limits = limits
        self._accept_again()

    def bind(self, listener: str, host: str, port: int) -> tuple[str, int]:
        """Claim an address without serving it yet; port 0 takes any that is free."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            sock.close()
            raise CannotListen(host, port, failure_text(error)) from error
        sock.setblocking(False)
        self._sockets[listener] = sock
        bound = sock.getsockname()
        return bound[0], bound[1]

    def start(self) -> None:
        for listener, sock in self._sockets.items():
            sock.listen(self._limits.socket_listen_backlog_size)
            self._loop.add_reader(sock.fileno(), self._accept, listener, sock)
        self._plan_sweep()

    def stop(self) -> None:
        """Take no more clients and let go of those there are."""
        if self._sweep is not None:
            self._sweep.cancel()
        for sock in self._sockets.values():
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()
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
            self._pace.taken += 1
            self._admit(listener, client, (str(address[0]), int(address[1])))

    def _has_room(self, listener: str, sock: socket.socket) -> bool:
        """Whether one more may come now; those who may not wait in the kernel's queue."""
        if len(self.connections) >= self._limits.max_connections:
            _log.warning("clients wait for others to go: max.connections is reached")
            self._hold(listener, sock)  # Until one is forgotten.
            return False
        wait_s = self._pace.wait_s(self._loop.time(), self._limits.max_connection_creation_rate)
        if wait_s:
            self._hold(listener, sock)
            self._loop.call_later(wait_s, self._accept_again)
        return not wait_s

    def _pause_accepting(self, listener: str, sock: socket.socket, error: OSError) -> None:
        """Without descriptors accept() fails at once and for ever; spinning on it helps nobody."""
        if error.errno not in _OUT_OF_DESCRIPTORS:
            raise error
        _log.warning(
            "cannot accept a client (%s): raise this process's limit of open files",
            error.strerror,
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
            _log.warning("refused a connection of %s: max.connections.per.ip is reached", host)
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
        connection = Connection(
            client,
            peer,
            listener,
            loop=self._loop,
            ready=self._ready,
            buffers=self._buffers,
            gather=self._gather,
            dispatch=self._dispatch,
            on_close=self._forget,
        )
        self.connections.add(connection)
        self._per_host[host] += 1
        self.accepted += 1

    def _forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
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
            _log.info("closed the idle connection of %s", connection.peer)
            connection.close()
        self._plan_sweep()


def swept(connections: Iterable[Connection]) -> list[Connection]:
    """The connections that have completed no request for so many sweeps, with none under way.

    A frame that trickles in is no activity: who sends a byte a minute is idle.
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


def failure_text(error: OSError) -> str:
    """What the system says, in lower-case words that fit into a sentence."""
    # asyncio writes an essay into strerror that names the address again.
    text = os.strerror(error.errno) if error.errno else str(error)
    return text[:1].lower() + text[1:]
