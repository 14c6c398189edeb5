"""A network in memory between named machines: connections that are slow, cut, lost or refused.

It behaves as TCP does. The bytes of a connection arrive in order. Where a direction is cut they
wait, and arrive when it is healed. A process that dies closes its connections, and new ones are
refused. A machine without power is silent, and after its restart rejects what belongs to old
connections.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from tests.builders.simulated.processes import Process, SimulatedLoop, current_process

_RETRANSMISSION_S = 0.2
_KERNEL = contextvars.Context()


class Socket:
    """An address that a node has claimed."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def close(self) -> None:
        return


class Listening:
    """A server on an address."""

    def __init__(self, network: "Network", key: tuple[str, int]) -> None:
        self._network = network
        self._key = key

    def close(self) -> None:
        self._network.listeners.pop(self._key, None)


class Host:
    """The kernel of a machine: its power, and the connections of its processes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_on = True
        self.boot = 0
        self.slowness = 1.0
        self.ends: dict[End, None] = {}


class Network:
    """All machines, and what is wrong between them."""

    def __init__(self, loop: SimulatedLoop, chance: Random) -> None:
        self.loop = loop
        self.chance = chance
        self.hosts: dict[str, Host] = {}
        self.listeners: dict[tuple[str, int], tuple[Process, Callable[[], Any]]] = {}
        self.cuts: set[tuple[str, str]] = set()
        self.slow: dict[tuple[str, str], float] = {}
        self.disk_slowness: dict[str, float] = {}
        self.delay_s = 0.0005

    def host(self, name: str) -> Host:
        return self.hosts.setdefault(name, Host(name))

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self.cuts

    def trip_s(self, source: str, target: str) -> float:
        delay_s = self.delay_s * (0.2 + self.chance.expovariate(1.0))
        return delay_s * self.slow.get((source, target), 1.0)

    def thread_delay_s(self, machine: str) -> float:
        return self.chance.expovariate(1000.0) * self.disk_slowness.get(machine, 1.0)

    # Servers and clients.

    def listen(self, host: str, port: int, factory: Callable[[], Any]) -> Listening:
        process = current_process()
        assert process is not None
        key = host, port
        assert key not in self.listeners or not self.listeners[key][0].is_alive
        self.listeners[key] = process, factory
        return Listening(self, key)

    async def connect(
        self, host: str, port: int, factory: Callable[[], Any]
    ) -> tuple["End", asyncio.BaseProtocol]:
        process = current_process()
        assert process is not None
        source = process.machine
        while True:
            await asyncio.sleep(self.trip_s(source, host))
            there = self.host(host)
            if not there.is_on or self.is_cut(source, host) or self.is_cut(host, source):
                await asyncio.sleep(_RETRANSMISSION_S)
                continue
            break
        target = self.listeners.get((host, port))
        await asyncio.sleep(self.trip_s(host, source))
        if target is None or not target[0].is_alive or not there.is_on:
            raise ConnectionRefusedError(111, "connection refused")
        server_process, accept = target
        ours, theirs = End(self, process), End(self, server_process)
        ours.peer, theirs.peer = theirs, ours
        self.loop.call_soon(theirs.open, accept, context=server_process.context.copy())
        protocol = factory()
        ours.protocol = protocol
        protocol.connection_made(ours)
        return ours, protocol

    # Deaths.

    def close_all_of(self, process: Process) -> None:
        """Close the connections of a process that has died, as its kernel does."""
        for key in [key for key, (owner, _) in self.listeners.items() if owner is process]:
            del self.listeners[key]
        for end in list(self.host(process.machine).ends):
            if end.process is process:
                end.leave()

    def power_off(self, name: str) -> None:
        host = self.host(name)
        host.is_on = False
        host.boot += 1
        for end in list(host.ends):
            end.is_closed = True
        host.ends.clear()
        for key in [key for key, (owner, _) in self.listeners.items() if owner.machine == name]:
            del self.listeners[key]

    def power_on(self, name: str) -> None:
        self.host(name).is_on = True

    def lose_connection(self) -> None:
        """Reset a connection, for both of its ends."""
        ends = [end for host in self.hosts.values() for end in host.ends]
        if ends:
            end = self.chance.choice(ends)
            end.reset()
            end.peer.reset()


class End(asyncio.Transport):
    """One end of a connection."""

    peer: "End"
    protocol: Any = None

    def __init__(self, network: Network, process: Process) -> None:
        super().__init__()
        self.network = network
        self.process = process
        self.host = network.host(process.machine)
        self.boot = self.host.boot
        self.is_closed = False
        self._is_reading = True
        self._arrived: deque[bytes | None] = deque()
        self._under_way: deque[bytes | None] = deque()  # None is the end of the stream.
        self._is_moving = False
        self._context = process.context.copy()
        self.host.ends[self] = None

    def open(self, accept: Callable[[], Any]) -> None:
        """Accept the connection."""
        self.protocol = accept()
        self.protocol.connection_made(self)
        self._take()

    # The protocol's calls.

    def write(self, data: Any) -> None:
        if not self.is_closed:
            self._send(bytes(data))

    def close(self) -> None:
        """Close after everything that was written."""
        if self.is_closed:
            return
        self.leave()
        self.network.loop.call_soon(self._lost, None, context=self._context)

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.peer.host.name, 0) if name == "peername" else default

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._take()

    # The kernel.

    def leave(self) -> None:
        """Tell the peer that nothing follows."""
        if not self.is_closed:
            self._send(None)
            self.is_closed = True
            self.host.ends.pop(self, None)

    def reset(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.host.ends.pop(self, None)
            error = ConnectionResetError(104, "connection reset by peer")
            self.network.loop.call_soon(self._lost, error, context=self._context)

    def _send(self, data: bytes | None) -> None:
        self._under_way.append(data)
        if not self._is_moving:
            self._move()

    def _move(self) -> None:
        self._is_moving = True
        delay_s = self.network.trip_s(self.host.name, self.peer.host.name)
        self.network.loop.call_later(delay_s, self._arrive, context=_KERNEL)

    def _arrive(self) -> None:
        network, peer = self.network, self.peer
        if self.boot != self.host.boot:
            return  # It was lost with the machine that sent it.
        there = peer.host
        if not there.is_on or network.is_cut(self.host.name, there.name):
            network.loop.call_later(_RETRANSMISSION_S, self._arrive, context=_KERNEL)
            return
        if peer.is_closed:
            self._under_way.clear()
            self._is_moving = False
            self.reset()
            return
        data = self._under_way.popleft()
        if data is not None and len(data) > 1 and network.chance.random() < 0.05:
            middle = network.chance.randrange(1, len(data))
            self._under_way.appendleft(data[middle:])
            data = data[:middle]
        network.loop.call_soon(peer.receive, data, context=peer._context)
        if self._under_way:
            self._move()
        else:
            self._is_moving = False

    def receive(self, data: bytes | None) -> None:
        self._arrived.append(data)
        self._take()

    def _take(self) -> None:
        while self._arrived and self._is_reading and not self.is_closed and self.protocol:
            data = self._arrived.popleft()
            if data is None:
                self.is_closed = True
                self.host.ends.pop(self, None)
                self._lost(None)
            else:
                _feed(self.protocol, data)

    def _lost(self, error: Exception | None) -> None:
        if self.protocol is not None:
            self.protocol.connection_lost(error)


def _feed(protocol: Any, data: bytes) -> None:
    if not isinstance(protocol, asyncio.BufferedProtocol):
        protocol.data_received(data)
        return
    view = memoryview(data)
    while view:
        buffer: Any = protocol.get_buffer(len(view))
        count = min(len(buffer), len(view))
        buffer[:count] = view[:count]
        protocol.buffer_updated(count)
        view = view[count:]
