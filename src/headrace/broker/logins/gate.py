"""The gate of a SASL listener: it serves a connection until the client is logged in.

The gate is a connection's dispatch before the login and replaces itself with the broker's after it,
so requests of clients that are logged in cost nothing more. When a session ends, a timer puts the
gate back, and the next request must be a handshake.

A failed login is answered late, and the connection is not read meanwhile. The number of connections
that wait is bounded: beyond it the oldest one is answered at once.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.broker.connection import Connection, HostileFrame
from headrace.errors import IllegalSaslState
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import DecodeError
from headrace.protocol.framing import read_request_header
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.security.sasl.authentication import (
    AnswerVersions,
    Authentication,
    NoLoginRequest,
    Session,
    Step,
)

if TYPE_CHECKING:
    from headrace.broker.frame_buffers import Frames
    from headrace.runtime.clock import Clock
    from headrace.security.sasl.listener import ListenerLogins

WAITING_MAX = 1000
"""Failed logins whose answers are delayed, on one listener."""

_RENEWED_AGAIN_MS = 1000
"""As in Kafka, a session is not renewed more often."""

Dispatch = Callable[[Connection, "Frames", int, int], None]


class Gate:
    """Serves the connections of one listener before their login."""

    def __init__(
        self,
        logins: "ListenerLogins",
        *,
        dispatch: Dispatch,
        versions_for: Callable[[Connection], AnswerVersions],
        loop: asyncio.AbstractEventLoop,
        clock: "Clock",
    ) -> None:
        self.logins = logins
        self.dispatch = dispatch
        self.loop = loop
        self.clock = clock
        self._versions_for = versions_for
        self.waiting: dict[_Login, None] = {}
        """Failed logins without an answer yet, the oldest first."""

    def admit(self, connection: Connection) -> None:
        """Serve a new connection."""
        connection.login = _Login(self, connection)
        connection.serve_by(self, self.logins.frame_bytes_max)

    def __call__(self, connection: Connection, data: "Frames", position: int, end: int) -> None:
        login = connection.login
        assert isinstance(login, _Login), "the gate admitted it"
        if end - position > self.logins.frame_bytes_max:
            raise HostileFrame(
                f"a request of {end - position} bytes; sasl.server.max.receive.size allows "
                f"{self.logins.frame_bytes_max}"
            )
        login.take(memoryview(data)[position:end])

    def authentication(
        self, connection: Connection, previous: Session | None = None
    ) -> Authentication:
        return self.logins.authentication(self._versions_for(connection), previous)


class _Login:
    """The login of one connection: under way, failed, or a session that may end."""

    __slots__ = ("_authentication", "_connection", "_gate", "_late", "_renewed_ms", "_session",
                 "_timer")  # fmt: skip

    def __init__(self, gate: Gate, connection: Connection) -> None:
        self._gate = gate
        self._connection = connection
        self._authentication: Authentication | None = gate.authentication(connection)
        self._session: Session | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._late: bytes | None = None  # The answer to a failed login.
        self._renewed_ms = -_RENEWED_AGAIN_MS

    # --- before a session -----------------------------------------------------------------------

    def take(self, frame: memoryview) -> None:
        """Serve a frame of a client that is not logged in."""
        if self in self._gate.waiting:
            return  # It is closed as soon as it is answered.
        authentication = self._authentication
        if authentication is None:
            if not _is_handshake(frame):
                self._gate.logins.reports.expired(self._connection.peer)
                self._connection.close()
                return
            authentication = self._authentication = self._again()
        try:
            step = authentication.take(frame)
        except NoLoginRequest as error:
            self._gate.logins.reports.out_of_place(self._connection.peer, str(error))
            self._connection.close()
            return
        self._follow(authentication, step)

    def _again(self) -> Authentication:
        return self._gate.authentication(self._connection, self._session)

    def _follow(self, authentication: Authentication, step: Step) -> None:
        if step.failure is not None:
            self._fail(authentication.mechanism, step.failure, step.answer)
            return
        if step.answer is not None:
            self._connection.answer(step.answer)
        if step.session is not None:
            self._open(step.session)

    def _open(self, session: Session) -> None:
        """Let the client in until its session ends."""
        gate, connection = self._gate, self._connection
        is_renewal = self._session is not None
        self._session, self._authentication = session, None
        connection.principal = session.login.principal
        connection.access = None  # The rights were those of another principal.
        connection.serve_by(gate.dispatch)
        self._stop_timer()
        if session.lifetime_ms is not None:
            self._timer = gate.loop.call_later(session.lifetime_ms / 1000, self._expire)
        gate.logins.reports.succeeded(
            connection.peer,
            connection.host,
            session.mechanism,
            connection.principal,
            is_renewal=is_renewal,
        )

    # --- the end of a session -------------------------------------------------------------------

    def begin_again(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        """Answer a handshake during a session; only a session that ends can be renewed."""
        gate, now_ms = self._gate, self._gate.clock.monotonic_ms()
        session = self._session
        is_early = now_ms - self._renewed_ms < _RENEWED_AGAIN_MS
        if session is None or session.lifetime_ms is None or is_early:
            return SaslHandshakeResponse(error_code=IllegalSaslState.code)
        self._renewed_ms = now_ms
        authentication = self._authentication = self._again()
        self._connection.serve_by(gate, gate.logins.frame_bytes_max)
        response = authentication.begin(request.mechanism, version)
        if response.error_code:
            self._report_failure("", "unsupported mechanism")
            # The dispatcher still has to send the answer.
            gate.loop.call_later(gate.logins.failure_delay_ms / 1000, self._connection.close)
        return response

    def _expire(self) -> None:
        """Demand a handshake with the next request."""
        self._timer = None
        self._connection.serve_by(self._gate, self._gate.logins.frame_bytes_max)

    # --- failures -------------------------------------------------------------------------------

    def _fail(self, mechanism: str, reason: str, answer: bytes | None) -> None:
        """Answer later, and close the connection."""
        gate = self._gate
        self._report_failure(mechanism, reason)
        self._stop_timer()
        self._late = answer
        self._connection.wait()
        gate.waiting[self] = None
        delay_s = gate.logins.failure_delay_ms / 1000
        self._timer = gate.loop.call_later(delay_s, self._answer_failure)
        if len(gate.waiting) > WAITING_MAX:
            next(iter(gate.waiting))._answer_failure()

    def _report_failure(self, mechanism: str, reason: str) -> None:
        connection = self._connection
        self._gate.logins.reports.failed(
            connection.peer,
            connection.host,
            mechanism,
            reason,
            is_renewal=self._session is not None,
        )

    def _answer_failure(self) -> None:
        self._stop_timer()
        self._connection.finish([] if self._late is None else [self._late])
        self._connection.close()

    def closed(self) -> None:
        self._gate.waiting.pop(self, None)
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _is_handshake(frame: memoryview) -> bool:
    try:
        return read_request_header(frame)[0].api_key == ApiKey.SASL_HANDSHAKE
    except DecodeError:
        return False
