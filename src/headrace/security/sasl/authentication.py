"""A connection's way to its login: the requests that a SASL listener serves before, in order.

The client may ask once for ApiVersions, then names a mechanism by SaslHandshake, then exchanges
messages of that mechanism: in SaslAuthenticate requests after a handshake v1, as bare frames after
a handshake v0. Order and answers are those of Kafka's SaslServerAuthenticator. Bytes that Kafka
does not answer raise `NoLoginRequest`, and the connection is closed.

A session may end (KIP-368). Then the client authenticates again on the open connection, with the
same mechanism and as the same principal.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from headrace.errors import (
    HeadraceError,
    IllegalSaslState,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import request_type_of, response_type_of
from headrace.protocol.codec import DecodeError, read_bounded
from headrace.protocol.framing import RequestHeader, encode_response, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.refusals import refusal_of
from headrace.protocol.request_limits import ELEMENTS_MAX
from headrace.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.security.sasl.server import Login, LoginRejected, NewExchange, ServerExchange

_HANDSHAKES = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE)
_WITH_HEADERS_FROM = 1
_SIZE_BYTES = 4

AnswerVersions = Callable[[RequestHeader, ApiVersionsRequest | None], ApiVersionsResponse]
"""Answers ApiVersions; the request is None if its version is unknown."""


class NoLoginRequest(HeadraceError):
    """A frame that gets no answer at this point; the connection is closed."""


class Mechanisms(msgspec.Struct, frozen=True):
    """The enabled mechanisms of one listener."""

    exchanges: Mapping[str, NewExchange]
    max_reauth_ms: Mapping[str, int] = {}
    """The longest session of a mechanism; 0 or no entry sets no limit."""


class Session(msgspec.Struct, frozen=True):
    """The result of an authentication."""

    mechanism: str
    login: Login
    lifetime_ms: int | None = None
    """The time after which the client must have authenticated again; None for no limit."""


class Step(NamedTuple):
    """The outcome of one frame."""

    answer: bytes | None = None
    session: Session | None = None
    """Set when the client is authenticated."""
    failure: str | None = None
    """The reason of a failed login, for this node only; the answer is sent late, and it is the
    last one."""


class Phase(Enum):
    """The position in the sequence of requests."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    WRONG_MECHANISM = auto()
    COMPLETE = auto()
    FAILED = auto()


class Authentication:
    """One authentication of a connection, or its repetition if there is a previous session."""

    def __init__(
        self,
        mechanisms: Mechanisms,
        answer_versions: AnswerVersions,
        now_ms: Callable[[], int],
        previous: Session | None = None,
    ) -> None:
        self.phase = Phase.VERSIONS_OR_HANDSHAKE if previous is None else Phase.HANDSHAKE
        self.mechanism = ""
        self.previous = previous
        self._mechanisms = mechanisms
        self._answer_versions = answer_versions
        self._now_ms = now_ms
        self._has_headers = False
        self._exchange: ServerExchange

    def take(self, frame: memoryview) -> Step:
        """Serve one frame, without its size; raise `NoLoginRequest` to close the connection."""
        try:
            if self.phase is Phase.AUTHENTICATE:
                return self._authenticate(frame) if self._has_headers else self._raw(frame)
            if self.phase is Phase.WRONG_MECHANISM:
                return self._fail(None, "another mechanism in a repeated authentication")
            if self.phase in (Phase.COMPLETE, Phase.FAILED):
                raise NoLoginRequest("the authentication is over")
            return self._shake_hands(frame)
        except DecodeError as error:
            raise NoLoginRequest(f"a request before the login cannot be read: {error}") from error

    # --- handshake ------------------------------------------------------------------------------

    def _shake_hands(self, frame: memoryview) -> Step:
        header, position = read_request_header(frame)
        key, version = header.api_key, header.api_version
        if key not in _HANDSHAKES:
            raise NoLoginRequest(f"{_name_of(key)} before the SASL handshake")
        if key == ApiKey.API_VERSIONS:
            return self._versions(header, frame, position)
        if version not in SaslHandshakeRequest.VERSIONS:
            raise NoLoginRequest(f"SASL_HANDSHAKE v{version} is not supported")
        request, _ = read_bounded(SaslHandshakeRequest, version, frame, position, ELEMENTS_MAX)
        answer = _encoded(header, self.begin(request.mechanism, version))
        failed = self.phase is Phase.FAILED
        return Step(answer, failure="unsupported mechanism" if failed else None)

    def _versions(self, header: RequestHeader, frame: memoryview, position: int) -> Step:
        if self.phase is not Phase.VERSIONS_OR_HANDSHAKE:
            raise NoLoginRequest("API_VERSIONS out of order")
        request: ApiVersionsRequest | None = None
        version = header.api_version
        if version in ApiVersionsRequest.VERSIONS:
            request, _ = read_bounded(ApiVersionsRequest, version, frame, position, ELEMENTS_MAX)
        response = self._answer_versions(header, request)
        if request is None:
            version = 0
        elif not response.error_code:
            self.phase = Phase.HANDSHAKE
        return Step(encode_response(header.correlation_id, header.api_key, version, response))

    def begin(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        """Choose a mechanism; the response has an error if that is impossible."""
        start = self._mechanisms.exchanges.get(mechanism)
        self._has_headers = version >= _WITH_HEADERS_FROM
        response = SaslHandshakeResponse(mechanisms=sorted(self._mechanisms.exchanges))
        if start is None:
            self.phase = Phase.FAILED
            response.error_code = UnsupportedSaslMechanism.code
        elif self.previous is not None and self.previous.mechanism != mechanism:
            self.phase = Phase.WRONG_MECHANISM
        else:
            self.mechanism = mechanism
            self._exchange = start()
            self.phase = Phase.AUTHENTICATE
        return response

    # --- messages of the mechanism --------------------------------------------------------------

    def _authenticate(self, frame: memoryview) -> Step:
        header, position = read_request_header(frame)
        key, version = header.api_key, header.api_version
        request_type = request_type_of(key)
        if request_type is None or version not in request_type.VERSIONS:
            raise NoLoginRequest(f"{_name_of(key)} v{version} during the login")
        request, _ = read_bounded(request_type, version, frame, position, ELEMENTS_MAX)
        if not isinstance(request, SaslAuthenticateRequest):
            text = f"Unexpected Kafka request of type {_name_of(key)} during SASL authentication."
            answer = _refusal(header, request, IllegalSaslState(text))
            return self._fail(answer, f"{_name_of(key)} instead of SASL_AUTHENTICATE")
        try:
            token = self._exchange.answer(bytes(request.auth_bytes))
            session = self._session()
        except SaslAuthenticationFailed as error:
            return self._reject(header, str(error), str(error))
        except LoginRejected as error:
            return self._reject(header, self._general_text(), str(error))
        response = SaslAuthenticateResponse(
            auth_bytes=token, session_lifetime_ms=(session and session.lifetime_ms) or 0
        )
        return Step(_encoded(header, response), session)

    def _raw(self, frame: memoryview) -> Step:
        """Serve a message without a request around it; a failure is not answered."""
        try:
            token = self._exchange.answer(bytes(frame))
            session = self._session()
        except (SaslAuthenticationFailed, LoginRejected) as error:
            return self._fail(None, str(error))
        return Step(len(token).to_bytes(_SIZE_BYTES) + token, session)

    def _reject(self, header: RequestHeader, text: str, reason: str) -> Step:
        code = SaslAuthenticationFailed.code
        response = SaslAuthenticateResponse(error_code=code, error_message=text)
        return self._fail(_encoded(header, response), reason)

    def _general_text(self) -> str:
        """The text for every kind of wrong credentials, so that it reveals none."""
        what = "authentication" if self.previous is None else "re-authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self.mechanism}"
        )

    def _session(self) -> Session | None:
        login = self._exchange.login
        if login is None:
            return None
        if self.previous is not None and _dotted(self.previous.login) != _dotted(login):
            raise SaslAuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{_dotted(self.previous.login)}: {_dotted(login)}"
            )
        self.phase = Phase.COMPLETE
        return Session(self.mechanism, login, self._lifetime_ms(login))

    def _lifetime_ms(self, login: Login) -> int | None:
        limit_ms = self._mechanisms.max_reauth_ms.get(self.mechanism, 0)
        limits = [limit_ms] if limit_ms > 0 else []
        if login.expires_at_ms is not None:
            limits.append(max(login.expires_at_ms - self._now_ms(), 0))
        return min(limits, default=None)

    def _fail(self, answer: bytes | None, reason: str) -> Step:
        self.phase = Phase.FAILED
        return Step(answer, failure=reason)


def _encoded(header: RequestHeader, response: Message) -> bytes:
    return encode_response(header.correlation_id, header.api_key, header.api_version, response)


def _refusal(header: RequestHeader, request: Message, error: KafkaError) -> bytes | None:
    """Return the response of another API with an error; None if it has no place for one."""
    version = header.api_version
    try:
        response = refusal_of(response_type_of(type(request)))(request, error, version)
        return _encoded(header, response)
    except (AssertionError, KafkaError, DecodeError):
        return None


def _name_of(key: int) -> str:
    return ApiKey(key).name if key in ApiKey._value2member_map_ else f"API {key}"


def _dotted(login: Login) -> str:
    return f"{login.principal.type}.{login.principal.name}"
