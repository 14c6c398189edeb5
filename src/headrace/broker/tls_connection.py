"""A client connection with TLS: the same connection, over records of OpenSSL.

OpenSSL reads and writes the socket itself, which costs less than buffers between the two
(`docs/internals/decisions`). Three things differ from plain TCP:

- Before the first request there is a handshake, whose result is the principal.
- OpenSSL may hold decrypted bytes although the socket has none, so epoll does not report them. The
  connection then takes another turn.
- Files cannot go from the page cache to the socket. They are read and encrypted in bounded pieces.
"""

import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.broker.connection import Connection
from headrace.broker.frame_buffers import FrameBuffers, Frames
from headrace.errors import HeadraceError
from headrace.security.principals import Principal
from headrace.security.tls import reason_of

if TYPE_CHECKING:
    import asyncio

    from headrace.broker.handshakes import Handshakes
    from headrace.broker.produce.shapes import ProduceShape
    from headrace.broker.ready_sockets import ReadySockets

_RECORD_BYTES = 16 * 1024
_PIECE_BYTES = 4 * _RECORD_BYTES
_TURN_BYTES = 1 << 20  # A fast reader must not block the loop.
_HANDSHAKE = 0x16
_NO_TLS = "it speaks no TLS, and the listener accepts only TLS"
_BUFFER = (bytes, bytearray, memoryview)


class TlsConnection(Connection):
    """The socket of one client that speaks TLS."""

    __slots__ = ("_handshakes", "_has_greeted", "_is_secure", "_principal_of", "_reads_again")

    _sock: ssl.SSLSocket

    def __init__(
        self,
        sock: ssl.SSLSocket,
        peer: tuple[str, int],
        listener: str,
        *,
        handshakes: "Handshakes",
        principal_of: Callable[[ssl.SSLSocket], Principal],
        loop: "asyncio.AbstractEventLoop",
        ready: "ReadySockets",
        buffers: FrameBuffers,
        take: Callable[[Connection, "ProduceShape", Frames, int, int], bool],
        dispatch: Callable[[Connection, Frames, int, int], None],
        on_close: Callable[[Connection], None],
    ) -> None:
        super().__init__(
            sock,
            peer,
            listener,
            loop=loop,
            ready=ready,
            buffers=buffers,
            take=take,
            dispatch=dispatch,
            on_close=on_close,
        )
        self._recv_into = self._receive  # type: ignore[assignment]  # Never with a size.
        self._handshakes = handshakes
        self._principal_of = principal_of
        self._has_greeted = False  # The first byte has arrived.
        self._is_secure = False  # The handshake is finished.
        self._reads_again = False  # A turn is planned for bytes that OpenSSL holds.
        handshakes.begin(self)

    # --- handshake ----------------------------------------------------------------------------

    def _on_readable(self) -> None:
        if not self._is_secure:
            self._guard(self._shake_hands)
            return
        super()._on_readable()
        self._plan_reading()

    def _shake_hands(self) -> None:
        """Continue the handshake; a failed one is logged with its reason."""
        self._handshakes.moved(self)
        try:
            if not self._has_greeted and not self._greets():
                self._handshakes.fail(self, _NO_TLS, tries_tls=False)
                self.close()
                return
            self._sock.do_handshake()
            self.principal = self._principal_of(self._sock)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except ssl.SSLWantWriteError:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self.fd, self._on_writable)
            return
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._handshakes.lose(self, has_greeted=self._has_greeted)
            self.close()
            return
        except ssl.SSLError as error:
            self._refuse(reason_of(error))
            return
        except HeadraceError as error:
            self._refuse(str(error))
            return
        self._is_secure = True
        self._handshakes.succeed(self)
        self._plan_reading()

    def _greets(self) -> bool:
        """Return whether the first byte begins a TLS handshake; a lost peer sends none."""
        opening = socket.socket.recv(self._sock, 1, socket.MSG_PEEK)
        self._has_greeted = bool(opening)
        return not opening or opening[0] == _HANDSHAKE

    def _refuse(self, reason: str) -> None:
        self._handshakes.fail(self, reason)
        self.close()

    def _on_writable(self) -> None:
        if self._is_secure:
            super()._on_writable()
            return
        self._writing = False
        self._loop.remove_writer(self.fd)
        self._guard(self._shake_hands)

    # --- in -----------------------------------------------------------------------------------

    def _receive(self, view: memoryview) -> int:
        """Decrypt what has arrived into a buffer; 0 is the end of the stream."""
        sock, filled, room = self._sock, 0, len(view)
        try:
            while filled < room:
                count = sock.read(room - filled, view[filled:] if filled else view)
                if not count:
                    break
                filled += int(count)
                # A record that is not full is mostly the last one, and epoll reports any other.
                if int(count) < _RECORD_BYTES and not sock.pending():
                    break
        except ssl.SSLWantReadError:
            if not filled:
                raise BlockingIOError from None
        return filled

    def _plan_reading(self) -> None:
        """Take another turn if OpenSSL holds bytes, unless a request is under way."""
        if self.closed or self._reads_again or not self._sock.pending():
            return
        if not (self._waiting or self._writing or self._queued):
            self._reads_again = True
            self._ready.queue(self._read_again)

    def _read_again(self) -> None:
        self._reads_again = False
        if not self.closed:
            self._on_readable()

    def _resume(self) -> None:
        super()._resume()
        self._plan_reading()

    def _is_at_end(self) -> bool:
        """Return whether a lost peer has sent nothing else; other bytes are kept to be served."""
        if self._stash:
            return False
        try:
            rest = self._sock.read(_RECORD_BYTES)
        except ssl.SSLWantReadError:
            return False
        self._stash = bytearray(rest)
        return not rest

    # --- out ----------------------------------------------------------------------------------

    def _flush(self) -> bool:
        """Encrypt and send what the socket takes; true when nothing is left."""
        out, sock, sent_in_turn = self._out, self._sock, 0
        try:
            while out:
                if sent_in_turn >= _TURN_BYTES:
                    return self._continue_later()
                piece = self._first_piece()
                sent = sock.write(piece)
                self.bytes_out += sent
                sent_in_turn += sent
                if sent == len(piece):
                    out.popleft()
                else:
                    out[0] = memoryview(piece)[sent:]
        except ssl.SSLWantWriteError:
            return self._continue_later()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            # The peer is gone. Earlier requests are served all the same; after them reading finds
            # the end.
            out.clear()
        return True

    def _continue_later(self) -> bool:
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self.fd, self._on_writable)
        return False

    def _first_piece(self) -> bytes | bytearray | memoryview:
        """Make the first part bytes of a piece's size, if there are that many.

        Small parts become one record. OpenSSL must see the same bytes again after a socket was
        full, so the piece stays in the queue until it is sent.
        """
        out = self._out
        first = out[0]
        if isinstance(first, _BUFFER) and (len(out) == 1 or len(first) >= _RECORD_BYTES):
            return first
        size, run = 0, []
        while out and size < _PIECE_BYTES:
            part = out.popleft()
            if isinstance(part, _BUFFER):
                data: bytes | bytearray | memoryview = part
            else:
                data = os.pread(part.fileno(), min(part.size, _PIECE_BYTES - size), part.position)
                if not data:
                    raise OSError(
                        errno.EIO, "a segment ended before the bytes promised to a consumer"
                    )
                part.position += len(data)
                part.size -= len(data)
                if part.size:
                    out.appendleft(part)
            size += len(data)
            run.append(data)
        piece = run[0] if len(run) == 1 else b"".join(run)
        out.appendleft(piece)
        return piece

    # --- end ----------------------------------------------------------------------------------

    def close(self) -> None:
        if not self.closed:
            self._handshakes.end(self)
            if self._is_secure:
                self._notify_close()
        super().close()

    def _notify_close(self) -> None:
        """Tell the peer that this is the end, as far as the socket takes it at once."""
        try:
            self._sock.unwrap()
        except (OSError, ValueError):
            return
