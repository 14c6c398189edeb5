"""The data port of a simulated node: frames of simulated connections, served by its dispatcher."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from headrace.broker.connection import HostileFrame
from headrace.runtime import files
from headrace.security.principals import ANONYMOUS
from tests.builders.simulated.network import Network

_log = logging.getLogger("headrace.simulated.port")


class DataPort:
    """Does what `broker.server.Server` does."""

    def __init__(self, network: Network, loop: Any, limits: Any, buffers: Any, round_: Any) -> None:
        self.limits = limits
        self.round = round_
        self.dispatch: Callable[[Any, bytearray, int, int], None]
        self.connections: dict[PortConnection, None] = {}
        self.accepted = 0
        self.refused = 0
        self.on_disconnect: Callable[[Any], None] | None = None
        self.is_in_round = False
        self._network = network
        self._addresses: list[tuple[str, str, int]] = []
        self._listening: list[Any] = []

    def bind(self, listener: str, host: str, port: int) -> tuple[str, int]:
        self._addresses.append((listener, host, port))
        return host, port

    def start(
        self, dispatch: Callable[[Any, bytearray, int, int], None], gates: Any = None
    ) -> None:
        assert not gates, "clients of a simulation do not log in"
        self.dispatch = dispatch
        for listener, host, port in self._addresses:
            accept = lambda listener=listener: PortConnection(self, listener)  # noqa: E731
            self._listening.append(self._network.listen(host, port, accept))

    def stop(self) -> None:
        for one in self._listening:
            one.close()
        for connection in list(self.connections):
            connection.close()


class PortConnection(asyncio.Protocol):
    """Does what `broker.connection.Connection` does, with whole frames instead of a socket."""

    def __init__(self, port: DataPort, listener: str) -> None:
        self.port_ = port
        self.listener = listener
        self.host, self.port = "10.0.0.7", 1
        self.principal = ANONYMOUS
        self.access = self.login = None
        self.peer = "client:1"
        self.software = ("unknown", "unknown")
        self.on_abandoned: Callable[[], None] | None = None
        self.produce_shape: Any = None
        self.repeated: Any = None
        self.gathered = self.requests = self.spent_ns = self.bytes_in = self.bytes_out = 0
        self.client_id: str | None = None
        self.closed = False
        self.is_active = True
        self.idle_sweeps = 0
        self.stashed_ns = 0
        self.is_waiting = False
        self._buffer = bytearray()
        self._out: deque[Any] = deque()
        self._is_serving = False
        self._transport: Any = None

    # --- in ---

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.port_.connections[self] = None
        self.port_.accepted += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._serve()

    def _serve(self) -> None:
        if self._is_serving:
            return
        self._is_serving = True
        opens_round = not self.port_.is_in_round
        if opens_round:
            self.port_.is_in_round = True
            self.port_.round.begin()
        try:
            self._serve_frames()
        except (HostileFrame, OSError) as error:
            _log.error("invalid request", exc_info=error)
            self.close()
        except Exception:
            self.fail()
        finally:
            self._is_serving = False
            if opens_round:
                self.port_.is_in_round = False
                self.port_.round.end()
        self._flush()

    def _serve_frames(self) -> None:
        buffer = self._buffer
        while not (self.closed or self.is_waiting) and len(buffer) >= 4:
            end = 4 + int.from_bytes(buffer[:4])
            if end > len(buffer):
                return
            frame = buffer[:end]
            del buffer[:end]
            self.port_.dispatch(self, frame, 4, end)

    # --- out ---

    def answer(self, data: Any) -> None:
        self._out.append(bytes(data))

    answer_in_round = answer

    def answer_parts(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if isinstance(part, (bytes, bytearray, memoryview)):
                self._out.append(bytes(part))
            else:
                content = files.pread(part.fileno(), part.size, part.position)
                if len(content) < part.size:
                    raise OSError("a segment ended before the bytes promised to a consumer")
                self._out.append(content)
        if not self._is_serving:
            self._flush()

    def deliver(self, answer: bytes | None) -> None:
        self.gathered -= 1
        if not self.closed and answer:
            self._out.append(answer)
            if not self.gathered:
                self._flush()

    def wait(self, on_abandoned: Callable[[], None] | None = None) -> None:
        self.is_waiting = True
        self.on_abandoned = on_abandoned

    def finish(self, parts: Iterable[Any]) -> None:
        if self.closed:
            return
        self.is_waiting = False
        self.on_abandoned = None
        try:
            self.answer_parts(parts)
        except OSError as error:
            _log.error("answer not sent", exc_info=error)
            self.close()
            return
        self._serve()

    def _flush(self) -> None:
        if self._out and not self.closed:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    # --- end ---

    def fail(self) -> None:
        _log.exception("request failed, connection closed")
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.port_.connections.pop(self, None)
        self._buffer.clear()
        self._out.clear()
        self.repeated = None
        self._transport.close()
        abandoned, self.on_abandoned = self.on_abandoned, None
        if abandoned is not None:
            abandoned()
        if self.port_.on_disconnect is not None:
            self.port_.on_disconnect(self)
