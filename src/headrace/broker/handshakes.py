"""TLS handshakes under way: their number and their time are bounded, and failures are logged.

A peer that connects and sends nothing would otherwise hold a connection for `connections.max.idle`.
Each listener has its own maximum, so that strangers at one of them do not keep brokers out of
another. A listener at its maximum closes the handshakes whose peers have sent nothing for a while.
"""

import logging
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from headrace.runtime.log_limits import LogLimit
from headrace.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from headrace.security.sasl.reports import Audit

_log = logging.getLogger(__name__)

HANDSHAKES_MAX = 1000
"""The maximum of one listener."""

_TIMEOUT_S = 10.0
_PATIENCE_S = 3.0  # More than the loop needs for a round of that many handshakes.
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
        self._moved_s: dict[Beginning, float] = {}  # In the order of their last bytes.
        self._per_listener: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._crowded: asyncio.TimerHandle | None = None
        self._limits = {True: LogLimit(), False: LogLimit()}
        """For connections that try TLS, and for those that do not."""
        self._lost = LogLimit()
        self.failed = 0
        self.audit: Audit | None = None
        """Receives the result of each handshake with a client certificate, and failures."""

    def has_room(self, listener: str) -> bool:
        """Return whether a handshake may begin; a full listener loses those that stand still."""
        if self._per_listener[listener] < HANDSHAKES_MAX:
            return True
        self._close_still(listener)
        if self._per_listener[listener] < HANDSHAKES_MAX:
            return True
        if self._crowded is None:
            self._crowded = self._loop.call_later(_PATIENCE_S, self._look_again)
        return False

    def begin(self, connection: Beginning) -> None:
        now_s = self._loop.time()
        self._deadlines[connection] = now_s + _TIMEOUT_S
        self._moved_s[connection] = now_s
        self._per_listener[connection.listener] += 1
        if self._timer is None:
            self._timer = self._loop.call_later(_TIMEOUT_S, self._close_late)

    def moved(self, connection: Beginning) -> None:
        """Note that a peer has sent bytes."""
        if self._moved_s.pop(connection, None) is not None:
            self._moved_s[connection] = self._loop.time()

    def succeed(self, connection: Beginning) -> None:
        """Forget a connection whose client is known by its certificate, or anonymous."""
        self.end(connection)
        if self.audit is not None and connection.principal is not ANONYMOUS:
            self.audit(connection.listener, connection.host, _MECHANISM, connection.principal, None)

    def end(self, connection: Beginning) -> None:
        """Forget a connection, which is closed or past its handshake."""
        if self._deadlines.pop(connection, None) is not None:
            del self._moved_s[connection]
            self._per_listener[connection.listener] -= 1
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

    def lose(self, connection: Beginning, *, has_greeted: bool) -> None:
        """Log a peer that closed before the end of its handshake, which is no failure here.

        Port checks send nothing. Nodes that stop close later, and so do clients that distrust the
        certificate and send no reason, as asyncio's.
        """
        fields: dict[str, object] = {
            "listener": connection.listener,
            "connection": connection.peer,
        }
        if not has_greeted:
            _log.debug("connection closed before its TLS handshake", extra=fields)
        elif self._lost.allows():
            fields["suppressed"] = self._lost.suppressed()
            _log.info("connection closed in its TLS handshake", extra=fields)

    def close(self) -> None:
        for timer in (self._timer, self._crowded):
            if timer is not None:
                timer.cancel()
        self._timer = self._crowded = None

    def _close_still(self, listener: str) -> None:
        """Close the handshakes of a listener whose peers keep others waiting."""
        limit_s = self._loop.time() - _PATIENCE_S
        still = takewhile(lambda moved: moved[1] <= limit_s, self._moved_s.items())
        for connection in [one for one, _ in still if one.listener == listener]:
            self.fail(connection, "its peer sent nothing while others were waiting")
            connection.close()

    def _look_again(self) -> None:
        """Have full listeners looked at again, some of whose peers may stand still by now."""
        self._crowded = None
        self._on_room()

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
