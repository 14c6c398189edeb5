"""One client connection: requests are served one at a time, and answers leave in order.

As in Kafka, a connection whose request waits (a long poll, a commit), or whose answer is not sent
yet, is not served further. So each connection costs at most one request and one answer, and
answers leave in the order of the requests. It is not read either: a producer with acks=0 may
disconnect as soon as it has sent its records, and all of these must be served before the end of the
stream is read.

A client with many requests at once is served for a few milliseconds, then other clients are. A
client that exceeds a quota gets its answer, and is muted: for its throttle time it is neither read
nor served, as if a request waited.

Frames are handled in place: small ones in a scratch buffer shared by all connections, large ones in
a buffer of their own. A view of a frame is therefore valid only until its handler returns, and a
handler that waits must have decoded what it needs. Only the small Produce requests of a round of
ready sockets stay until the round ends (`produce/rounds.py`): bytes of the next connection are
placed behind them.
"""

import errno
import logging
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Iterable
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol

from headrace.broker.frame_buffers import LARGE_FRAME_BYTES, FrameBuffer, FrameBuffers, Frames
from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text
from headrace.security.principals import ANONYMOUS

if TYPE_CHECKING:
    import asyncio

    from headrace.broker.produce.shapes import ProduceShape
    from headrace.broker.ready_sockets import ReadySockets
    from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
    from headrace.security.access import Access

_log = logging.getLogger(__name__)

_unpack_size = Struct(">i").unpack_from
_MORE = socket.MSG_MORE
_ANSWERS_HELD_MAX = 16
_JOINED_BYTES_MAX = 16 * 1024
_SENDFILE_BYTES_MAX = 1 << 20  # A fast reader must not block the loop.
_TURN_NS = 4_000_000  # Nor must a client with thousands of small requests.


class FilePart(Protocol):
    """Bytes of an answer that the kernel copies from a file to the socket."""

    position: int
    size: int

    def fileno(self) -> int: ...


Buffer = bytes | bytearray | memoryview
Part = Buffer | FilePart


class LoginState(Protocol):
    """The login of a connection to a SASL listener."""

    def begin_again(self, request: "SaslHandshakeRequest", version: int) -> "SaslHandshakeResponse":
        """Answer a handshake on a connection that is logged in."""
        ...

    def closed(self) -> None:
        """Called when the connection is closed."""
        ...


class HostileFrame(HeadraceError):
    """Bytes that cannot be a Kafka request; the connection that sent them is closed."""


class Connection:
    """The socket of one client, its buffered bytes and its queued answers."""

    __slots__ = (
        "_dispatch",
        "_filled",
        "_frame",
        "_frame_bytes_max",
        "_frame_size",
        "_is_held",
        "_is_muted",
        "_loop",
        "_on_close",
        "_out",
        "_queued",
        "_reading",
        "_ready",
        "_recv_into",
        "_send",
        "_sock",
        "_stash",
        "_take",
        "_waiting",
        "_watched",
        "_writing",
        "access",
        "buffers",
        "bytes_in",
        "bytes_out",
        "client_id",
        "closed",
        "fd",
        "gathered",
        "host",
        "idle_sweeps",
        "is_active",
        "listener",
        "login",
        "on_abandoned",
        "port",
        "principal",
        "produce_shape",
        "repeated",
        "requests",
        "software",
        "spent_ns",
        "stashed_ns",
    )

    def __init__(
        self,
        sock: socket.socket,
        peer: tuple[str, int],
        listener: str,
        *,
        loop: "asyncio.AbstractEventLoop",
        ready: "ReadySockets",
        buffers: FrameBuffers,
        take: Callable[["Connection", "ProduceShape", Frames, int, int], bool],
        dispatch: Callable[["Connection", Frames, int, int], None],
        on_close: Callable[["Connection"], None],
    ) -> None:
        self._sock = sock
        self._send = sock.send
        self._recv_into = sock.recv_into
        self._loop = loop
        self._ready = ready
        self._take = take
        self._dispatch = dispatch
        self._frame_bytes_max = buffers.request_bytes_max
        self._on_close = on_close
        self.buffers = buffers
        self.fd = sock.fileno()
        self.host, self.port = peer
        self.listener = listener
        self.principal = ANONYMOUS
        self.access: Access | None = None  # The rights of the principal, once they are needed.
        self.login: LoginState | None = None  # None on a listener without SASL.
        self.software = ("unknown", "unknown")  # Name and version from ApiVersions v3.
        self.on_abandoned: Callable[[], None] | None = None
        self.produce_shape: ProduceShape | None = None  # The shape of its last Produce request.
        self.repeated: object = None  # The last request of an API in `REPEATED`, kept by dispatch.
        self.client_id: str | None = None  # The last request has it; None before the first.
        # Counts for `usage.py`, which takes them away.
        self.requests = self.bytes_in = self.bytes_out = self.spent_ns = 0
        self.gathered = 0  # Requests that are answered when this round of sockets ends.
        self.closed = False
        self.is_active = True  # A request was completed since the last sweep.
        self.idle_sweeps = 0
        self.stashed_ns = 0  # When frames began to wait for a request before them, else 0.
        self._stash = bytearray()
        self._frame: FrameBuffer | None = None
        self._frame_size = 0
        self._filled = 0
        self._out: deque[Part] = deque()
        self._is_held = False  # Its answers leave when this round of sockets ends.
        self._waiting = False
        self._is_muted = False  # It waits for the end of its throttle time.
        self._queued = False  # The stash is served when it is this connection's turn again.
        self._watched = True
        self._reading = True  # False while only the loss of the peer is watched for.
        self._writing = False
        ready.add(self.fd, self._on_readable)

    def serve_by(
        self,
        dispatch: Callable[["Connection", Frames, int, int], None],
        frame_bytes_max: int | None = None,
    ) -> None:
        """Have the next frames served by another function, with a limit of their size."""
        self._dispatch = dispatch
        limit = self.buffers.request_bytes_max
        self._frame_bytes_max = limit if frame_bytes_max is None else min(frame_bytes_max, limit)
        self.produce_shape = None  # Or requests of its shape would not reach the function.
        self.repeated = None

    # --- in ---------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        try:
            if self._waiting or self._writing:
                self._pause_reading()
            elif self._frame is not None:
                self._fill_frame(self._frame)
            elif self._stash:
                self._read_after_stash()
            else:
                buffers = self.buffers
                if not (received := self._recv_into(buffers.vacant)):
                    self.close()
                    return
                self.bytes_in += received
                start, shape = buffers.start, self.produce_shape
                end = start + received
                # Nearly always it is one frame, and most frames bring records.
                if shape is None or not self._take(self, shape, buffers.scratch, start, end):
                    self._serve_frames(buffers.scratch, start, end)
                elif self._out and not self._is_held:
                    self._flush()
        except (BlockingIOError, InterruptedError):
            return
        except (HostileFrame, OSError) as reason:
            self._give_up(reason)
        except Exception:  # Others are served in the same round, and must not miss their turn.
            self.fail()

    def _read_after_stash(self) -> None:
        if self._queued:
            self._pause_reading()
            return
        buffers = self.buffers
        start, kept = buffers.start, len(self._stash)
        buffers.vacant[:kept] = self._stash
        received = self._recv_into(buffers.vacant[kept:])
        if not received:
            self.close()
            return
        self.bytes_in += received
        self._stash = bytearray()
        self.stashed_ns = 0  # The request was incomplete, so it was not queued.
        self._serve_frames(buffers.scratch, start, start + kept + received)

    def _serve_frames(self, data: Frames, position: int, end: int) -> None:
        """Serve whole frames in `data[position:end]` until one has to wait or the turn is over."""
        turn_end_ns = 0
        while end - position >= 4:
            size = _unpack_size(data, position)[0]
            frame_end = position + 4 + size
            if frame_end > end or size < 0:
                self._check_size(size, data, position)
                break
            self.is_active = True
            self._dispatch(self, data, position + 4, frame_end)  # A login replaces it.
            position = frame_end
            if self.closed:
                return
            if self._waiting:
                break
            if self._out and len(self._out) >= _ANSWERS_HELD_MAX and not self._flush():
                break
            if position < end:  # One request alone, the usual case, needs no clock.
                now_ns = perf_counter_ns()
                if not turn_end_ns:
                    turn_end_ns = now_ns + _TURN_NS
                elif now_ns >= turn_end_ns:
                    self._queued = True
                    self._ready.queue(self._take_turn)
                    break
        # After a partial flush `_on_writable` sends the remaining answers and continues.
        if self._out and not (self._writing or self._is_held):
            self._flush()
        if position < end:
            self._keep(data, position, end)

    def _keep(self, data: Frames, position: int, end: int) -> None:
        """Keep bytes that cannot be served yet; a large unfinished frame gets its own buffer."""
        if end - position >= 4 and not (self._waiting or self._queued or self._out):
            size = 4 + _unpack_size(data, position)[0]
            if size > LARGE_FRAME_BYTES:
                frame = self.buffers.take(size)
                self._frame, self._frame_size, self._filled = frame, size, end - position
                frame[: end - position] = data[position:end]
                return
        self._stash = bytearray(data[position:end])
        if self._waiting or self._out:
            self.stashed_ns = perf_counter_ns()

    def _fill_frame(self, frame: FrameBuffer) -> None:
        size = self._frame_size
        view = memoryview(frame)
        while self._filled < size:
            wanted = size - self._filled
            received = self._recv_into(view[self._filled : size])
            if not received:
                self.close()
                return
            self._filled += received
            self.bytes_in += received
            if received < wanted:
                return
        self._frame = None
        self._serve_frames(frame if isinstance(frame, bytearray) else view, 0, size)
        self.buffers.give_back(frame)

    def _check_size(self, size: int, data: Frames, position: int) -> None:
        if 0 <= size <= self._frame_bytes_max:
            return
        opening = bytes(data[position : position + 4])
        if opening.startswith(_TLS_OPENINGS):
            raise HostileFrame(f"it speaks TLS, which listener {self.listener} does not support")
        if opening in _OTHER_PROTOCOLS:
            raise HostileFrame(f"it speaks {_OTHER_PROTOCOLS[opening]} to a Kafka port")
        is_usual = self._frame_bytes_max == self.buffers.request_bytes_max
        limit = "socket.request.max.bytes" if is_usual else "sasl.server.max.receive.size"
        raise HostileFrame(
            f"a request of {size} bytes is announced; {limit} allows {self._frame_bytes_max}"
        )

    def _pause_reading(self) -> None:
        """Leave new bytes, or their end, in the kernel while a request is under way.

        Only the loss of the peer is watched for. A lost peer receives no answer, so a waiting
        request is abandoned, unless others follow it, which must still be served.
        """
        if self._reading:
            self._reading = False
            if self._is_muted:
                self._ready.pause_until_end(self.fd)
            else:
                self._ready.pause(self.fd)
        elif self._is_muted and self._watched and not _has_lost_its_peer(self.fd):
            self._end_while_muted()
        elif _has_lost_its_peer(self.fd):
            if self._waiting and self._is_at_end():
                self.close()
                return
            self._watched = False  # Or the loss would be reported again and again.
            self._ready.remove(self.fd)

    def _end_while_muted(self) -> None:
        """Close if the peer has sent its last byte; requests before the end are served first."""
        if self._is_at_end():
            self.close()
            return
        self._ready.pause(self.fd)

    def _is_at_end(self) -> bool:
        """Return whether a lost peer has sent nothing else."""
        return not self._stash and not self._sock.recv(1, socket.MSG_PEEK)

    # --- out --------------------------------------------------------------------------------

    def answer(self, data: Buffer) -> None:
        """Queue an answer; it is sent when the frames at hand are served."""
        self._out.append(data)

    def answer_in_round(self, data: bytes) -> None:
        """Queue a small answer; during a round of ready sockets it is sent when the round ends."""
        self._out.append(data)
        if not self._is_held:
            self._is_held = self._ready.hold(self)

    def release(self) -> None:
        """Send the held answers at the end of a round, then serve the kept bytes."""
        self._is_held = False
        if self.closed or self._writing or not self._out:
            return
        self._guard(self._send_held)

    def _send_held(self) -> None:
        if self._flush() and not (self._reading or self._waiting):
            self._resume()

    def answer_parts(self, parts: "Iterable[Part]") -> None:
        self._out.extend(parts)

    def deliver(self, answer: bytes | None) -> None:
        """Answer a gathered request, not at all for acks=0; the last one sends all answers."""
        self.gathered = left = self.gathered - 1
        if self.closed:
            return
        if answer:
            self._out.append(answer)
        if self._out and not left:
            try:
                self._flush()
            except OSError as reason:
                self._give_up(reason)

    def wait(self, on_abandoned: Callable[[], None] | None = None) -> None:
        """Serve no other request until `finish` answers the one under way."""
        self._waiting = True
        self.on_abandoned = on_abandoned

    def finish(self, parts: "Iterable[Part]") -> None:
        """Answer the request that waited, then serve the bytes that have arrived meanwhile."""
        if self.closed:
            return
        self._waiting = False
        self._is_muted = False
        self.on_abandoned = None
        self.is_active = True
        self._out.extend(parts)
        self._guard(self._send_and_resume)

    def mute(self, duration_ms: int) -> None:
        """Neither read nor serve the client for its throttle time; call it after the answer."""
        self._is_muted = True
        self.wait(self._loop.call_later(duration_ms / 1000, self.finish, ()).cancel)

    def finish_muted(self, parts: "Iterable[Part]", duration_ms: int) -> None:
        """Answer the request that waited, and mute the client."""
        if self.closed:
            return
        self.is_active = True
        self._out.extend(parts)
        self.mute(duration_ms)
        self._guard(self._send_muted)

    def _send_muted(self) -> None:
        if self._out:
            self._flush()

    def _send_and_resume(self) -> None:
        if not self._out or self._flush():
            self._resume()

    def _take_turn(self) -> None:
        """Serve the frames that were queued behind other clients."""
        self._queued = False
        if self.closed or self._writing:  # `_on_writable` resumes it.
            return
        self._guard(self._resume)

    def _resume(self) -> None:
        """Serve the kept bytes; if no request is under way afterwards, read on."""
        if self._queued:
            return
        if stash := self._stash:
            self._stash = bytearray()
            self._serve_frames(stash, 0, len(stash))
            if not self._stash:
                self.stashed_ns = 0
        if self.closed:
            return
        if not self._watched:
            self._watched = self._reading = True
            self._ready.add(self.fd, self._on_readable)
        elif not (self._reading or self._waiting or self._queued or self._writing):
            self._reading = True
            self._ready.unpause(self.fd)

    def _flush(self) -> bool:
        """Send what the socket takes; true when nothing is left."""
        out = self._out
        try:
            if len(out) == 1 and isinstance(first := out[0], bytes):
                self.bytes_out += (sent := self._send(first))
                if sent == len(first):
                    out.clear()
                    return True
                out[0] = memoryview(first)[sent:]
            while out:
                part = out[0] if len(out) == 1 else _joined(out)
                if isinstance(part, (bytes, bytearray, memoryview)):
                    sent = self._send(part, _MORE) if len(out) > 1 else self._send(part)
                    self.bytes_out += sent
                    if sent == len(part):
                        out.popleft()
                    else:
                        out[0] = memoryview(part)[sent:]
                elif not self._send_file(part):
                    out.popleft()
        except (BlockingIOError, InterruptedError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self.fd, self._on_writable)
            return False
        except (BrokenPipeError, ConnectionResetError):
            # The peer is gone. Earlier requests are served all the same; after them reading finds
            # the end.
            out.clear()
        return True

    def _send_file(self, part: FilePart) -> int:
        """Send a piece of a file; returns the number of bytes left."""
        sent = os.sendfile(
            self.fd, part.fileno(), part.position, min(part.size, _SENDFILE_BYTES_MAX)
        )
        if not sent:
            raise OSError(errno.EIO, "a segment ended before the bytes promised to a consumer")
        self.bytes_out += sent
        part.position += sent
        part.size -= sent
        return part.size

    def _on_writable(self) -> None:
        self._guard(self._send_left)

    def _send_left(self) -> None:
        if not self._flush():
            return
        self._writing = False
        self._loop.remove_writer(self.fd)
        self.is_active = True
        if not self._waiting:  # Otherwise `finish` continues, after its own answer.
            self._resume()

    # --- end --------------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        """The address for the log: several clients may share a host."""
        return address_text(self.host, self.port)

    @property
    def is_waiting(self) -> bool:
        return self._waiting

    def _guard(self, step: Callable[[], None]) -> None:
        """Run a step; an error closes this connection and reaches no other."""
        try:
            step()
        except (HostileFrame, OSError) as reason:
            self._give_up(reason)
        except Exception:
            self.fail()

    def _give_up(self, reason: HostileFrame | OSError) -> None:
        """Close and log the reason: a warning for invalid bytes, not for a lost peer."""
        fields = {"connection": self.peer, "error": str(reason)}
        if isinstance(reason, HostileFrame):
            _log.warning("invalid request, connection closed", extra=fields)
        else:
            _log.debug("connection lost", extra=fields)
        self.close()

    def fail(self) -> None:
        """Close because of a fault of ours, which is logged; other connections go on."""
        _log.exception("request failed, connection closed", extra={"connection": self.peer})
        try:
            self.close()
        except Exception:
            _log.exception("closing a connection failed", extra={"connection": self.peer})

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._watched:
            self._ready.remove(self.fd)
        if self._writing:
            self._loop.remove_writer(self.fd)
        self._out.clear()
        self._stash = bytearray()
        self._frame = None
        self.repeated = None  # It refers to this connection.
        self._sock.close()
        login, self.login = self.login, None  # It refers to this connection.
        if login is not None:
            login.closed()
        abandoned, self.on_abandoned = self.on_abandoned, None
        if abandoned is not None:
            abandoned()
        self._on_close(self)


def _has_lost_its_peer(fd: int) -> bool:
    """Return whether a connection is gone in both directions: reset, or timed out."""
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))


def _joined(out: "deque[Part]") -> Part:
    """The first part, with the small ones that follow it: one send for many pipelined answers."""
    size = 0
    run: list[Buffer] = []
    for part in out:
        if not isinstance(part, (bytes, bytearray, memoryview)) or size > _JOINED_BYTES_MAX:
            break
        run.append(part)
        size += len(part)
    if len(run) > 1:
        for _ in run:
            out.popleft()
        out.appendleft(b"".join(run))
    return out[0]


_OTHER_PROTOCOLS = {
    b"GET ": "HTTP",
    b"POST": "HTTP",
    b"PUT ": "HTTP",
    b"HEAD": "HTTP",
    b"SSH-": "SSH",
}
_TLS_OPENINGS = (b"\x16\x03\x01", b"\x16\x03\x03")
