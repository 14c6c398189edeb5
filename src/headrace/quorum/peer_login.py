"""The login of one connection of a controller listener.

Other nodes and tools ask a controller seldom, so the end of a session is checked with each request
here, and not by a timer as on the data port (`broker/logins/gate.py`).
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.framing import read_request_header
from headrace.security.sasl.authentication import NoLoginRequest

if TYPE_CHECKING:
    from headrace.security.principals import Principal
    from headrace.security.sasl.authentication import AnswerVersions, Authentication, Session
    from headrace.security.sasl.listener import ListenerLogins

_RENEWED_AGAIN_S = 1.0


class Reply(NamedTuple):
    """The outcome of a frame that belongs to a login."""

    answer: bytes | None
    is_last: bool = False
    """True if the connection is closed after the answer."""


class PeerLogin:
    """A login under way, or the session that it has made."""

    def __init__(
        self,
        logins: "ListenerLogins",
        answer_versions: "AnswerVersions",
        peer: str,
        host: str,
    ) -> None:
        self._logins = logins
        self._answer_versions = answer_versions
        self._peer = peer
        self._host = host
        self._authentication: Authentication | None = logins.authentication(answer_versions)
        self._session: Session | None = None
        self._ends_s: float | None = None
        self._renewed_s = -_RENEWED_AGAIN_S

    @property
    def principal(self) -> "Principal | None":
        return self._session.login.principal if self._session is not None else None

    @property
    def frame_bytes_max(self) -> int | None:
        """The limit of a frame during a login; None during a session."""
        return self._logins.frame_bytes_max if self._authentication is not None else None

    async def take(self, frame: bytes) -> Reply | None:
        """Serve a frame of the login; return None for one that the session allows.

        Raise `NoLoginRequest` to close the connection. A failed login is answered late.
        """
        authentication = self._authentication or self._begin_again(frame)
        if authentication is None:
            return None
        step = authentication.take(memoryview(frame))
        if step.failure is not None:
            self._logins.reports.failed(
                self._peer,
                self._host,
                authentication.mechanism,
                step.failure,
                is_renewal=self._session is not None,
            )
            await asyncio.sleep(self._logins.failure_delay_ms / 1000)
            return Reply(step.answer, is_last=True)
        if step.session is not None:
            self._open(step.session)
        return Reply(step.answer)

    def _begin_again(self, frame: bytes) -> "Authentication | None":
        """Return a repeated login if the frame begins one; refuse others after the session."""
        now_s = asyncio.get_running_loop().time()
        is_handshake = read_request_header(frame)[0].api_key == ApiKey.SASL_HANDSHAKE
        if is_handshake and self._ends_s is not None:
            if now_s - self._renewed_s >= _RENEWED_AGAIN_S:
                self._renewed_s = now_s
                self._authentication = self._logins.authentication(
                    self._answer_versions, self._session
                )
                return self._authentication
        elif self._ends_s is not None and now_s >= self._ends_s:
            self._logins.reports.expired(self._peer)
            raise NoLoginRequest("the session has ended")
        return None

    def _open(self, session: "Session") -> None:
        is_renewal = self._session is not None
        self._session, self._authentication = session, None
        if session.lifetime_ms is None:
            self._ends_s = None
        else:
            self._ends_s = asyncio.get_running_loop().time() + session.lifetime_ms / 1000
        self._logins.reports.succeeded(
            self._peer,
            self._host,
            session.mechanism,
            session.login.principal,
            is_renewal=is_renewal,
        )
