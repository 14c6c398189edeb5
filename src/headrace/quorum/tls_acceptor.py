"""Accepts the connections of one controller listener with TLS.

asyncio's servers keep the context with which they began. Here each connection begins with the one
in force, so new certificates need no restart. A bounded number of handshakes is under way. When
others wait, the oldest one that takes too long is given up: silent strangers must not keep nodes
out.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.runtime.log_limits import LogLimit
from headrace.security.tls import reason_of

if TYPE_CHECKING:
    from headrace.security.tls import ListenerTls

_log = logging.getLogger(__name__)

_BACKLOG = 100
_HANDSHAKES_MAX = 500
_HANDSHAKE_TIMEOUT_S = 10.0
_PATIENCE_S = 3.0
_ACCEPT_PAUSE_S = 0.2


class TlsAcceptor:
    """One listening socket."""

    def __init__(
        self, sock: socket.socket, tls: "ListenerTls", connected: Callable[[], asyncio.Protocol]
    ) -> None:
        """`connected` makes the protocol of a connection whose handshake is finished."""
        self._sock = sock
        self._tls = tls
        self._connected = connected
        self._handshakes: dict[asyncio.Task[None], float] = {}
        """The handshakes under way with the time of their begin, the oldest first."""
        self._limit, self._lost = LogLimit(), LogLimit()
        sock.setblocking(False)
        sock.listen(_BACKLOG)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        self._accepting.cancel()
        for handshake in list(self._handshakes):
            handshake.cancel()
        self._sock.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room()
            try:
                client, address = await loop.sock_accept(self._sock)
            except OSError as error:
                _log.warning("connection to the controller lost", extra={"error": str(error)})
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            handshake = loop.create_task(self._shake_hands(client, str(address)))
            self._handshakes[handshake] = loop.time()
            handshake.add_done_callback(self._handshakes.pop)

    async def _room(self) -> None:
        """Wait until another handshake may begin."""
        while len(self._handshakes) >= _HANDSHAKES_MAX:
            oldest, begun_s = next(iter(self._handshakes.items()))
            left_s = begun_s + _PATIENCE_S - asyncio.get_running_loop().time()
            if left_s <= 0:
                oldest.cancel()
            await asyncio.wait(
                self._handshakes,
                timeout=left_s if left_s > 0 else None,
                return_when=asyncio.FIRST_COMPLETED,
            )

    async def _shake_hands(self, client: socket.socket, peer: str) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connected,
                client,
                ssl=self._tls.server,
                ssl_handshake_timeout=_HANDSHAKE_TIMEOUT_S,
            )
        except asyncio.CancelledError:
            client.close()
            raise
        except (ConnectionResetError, ssl.SSLEOFError):
            client.close()
            if self._lost.allows():
                lost = {
                    "listener": self._tls.listener,
                    "peer": peer,
                    "suppressed": self._lost.suppressed(),
                }
                _log.info("connection to a controller closed in its TLS handshake", extra=lost)
        except OSError as error:
            client.close()
            if self._limit.allows():
                reason = reason_of(error) if isinstance(error, ssl.SSLError) else str(error)
                fields = {
                    "listener": self._tls.listener,
                    "peer": peer,
                    "reason": reason,
                    "suppressed": self._limit.suppressed(),
                }
                _log.warning("TLS handshake with a controller failed", extra=fields)
