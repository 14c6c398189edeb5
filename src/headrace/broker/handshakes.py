"""TLS handshakes under way: their number and their time are bounded, and failures are logged.

A peer that connects and sends nothing would otherwise hold a connection for `connections.max.idle`.
"""

import logging
from typing import TYPE_CHECKING, Protocol

from headrace.runtime.log_limits import LogLimit
from headrace.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from headrace.security.sasl.reports import Audit

_log = logging.getLogger(__name__)

HANDSHAKES_MAX = 1000
_TIMEOUT_S = 10.0
_MECHANISM = "TLS"


class Beginning(Protocol):
    """A connection whose handshake is under way."""

    listener: str
    host: str
    principal: Principal

    @property
    def peer(self) -> str: ...

    def close(self) -> None: ...


class Handshakes:
    """The connections of all TLS listeners that have not finished their handshake."""

    def __init__(self, loop: "asyncio.AbstractEventLoop", on_room: "Callable[[], None]") -> None:
        """`on_room` is called when a handshake has ended and another may begin."""
        self._loop = loop
        self._on_room = on_room
        self._deadlines: dict[Beginning, float] = {}  # In the order of their beginning.
        self._timer: asyncio.TimerHandle | None = None
        self._limits = {True: LogLimit(), False: LogLimit()}
        """For connections that try TLS, and for those that do not."""
        self.failed = 0
        self.audit: Audit | None = None
        """Receives the result of each handshake with a client certificate, and failures."""

    @property
    def has_room(self) -> bool:
        return len(self._deadlines) < HANDSHAKES_MAX

    def begin(self, connection: Beginning) -> None:
        self._deadlines[connection] = self._loop.time() + _TIMEOUT_S
        if self._timer is None:
            self._timer = self._loop.call_later(_TIMEOUT_S, self._close_late)

    def succeed(self, connection: Beginning) -> None:
        """Forget a connection whose client is known by its certificate, or anonymous."""
        self.end(connection)
        if self.audit is not None and connection.principal is not ANONYMOUS:
            self.audit(connection.listener, connection.host, _MECHANISM, connection.principal, None)

    def end(self, connection: Beginning) -> None:
        """Forget a connection, which is closed or past its handshake."""
        if self._deadlines.pop(connection, None) is not None:
            self._on_room()

    def fail(self, connection: Beginning, reason: str, *, tries_tls: bool = True) -> None:
        """Count a failed handshake and log its reason; a flood is logged in part."""
        self.failed += 1
        if self.audit is not None:
            self.audit(connection.listener, connection.host, _MECHANISM, None, reason)
        limit = self._limits[tries_tls]
        if limit.allows():
            fields = {
                "listener": connection.listener,
                "connection": connection.peer,
                "reason": reason,
                "suppressed": limit.suppressed(),
            }
            _log.warning("TLS handshake failed, connection closed", extra=fields)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_late(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        late = [connection for connection, end_s in self._deadlines.items() if end_s <= now_s]
        for connection in late:
            self.fail(connection, f"it was not finished in {_TIMEOUT_S:g} s")
            connection.close()
        if self._deadlines:
            first_s = next(iter(self._deadlines.values()))
            self._timer = self._loop.call_at(first_s, self._close_late)
