"""The client's half of a login at another node: a handshake, then messages of the mechanism."""

from collections.abc import Awaitable
from typing import Protocol

from headrace.errors import SaslAuthenticationFailed
from headrace.peers.own_login import OwnLogin
from headrace.protocol.codec import decode
from headrace.protocol.message import Message
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_ROUNDS_MAX = 8
_HANDSHAKE_VERSION = SaslHandshakeRequest.VERSIONS[-1]
_AUTHENTICATE_VERSION = SaslAuthenticateRequest.VERSIONS[-1]


class Asking(Protocol):
    """The part of a connection that a login uses."""

    def ask(self, request: Message, version: int, client_id: str) -> Awaitable[memoryview]: ...


async def log_in(connection: Asking, login: OwnLogin, client_id: str) -> int:
    """Log in; return the life of the session in milliseconds, 0 if it does not end.

    Every node that can be a peer understands the newest versions.
    """
    request = SaslHandshakeRequest(login.mechanism)
    body = await connection.ask(request, _HANDSHAKE_VERSION, client_id)
    handshake = decode(SaslHandshakeResponse, _HANDSHAKE_VERSION, body)
    if handshake.error_code:
        offered = ", ".join(handshake.mechanisms) or "no mechanism"
        raise SaslAuthenticationFailed(f"it offers {offered}, not {login.mechanism}")
    exchange = login.exchange()
    lifetime_ms = 0
    try:
        token = next(exchange)
        for _ in range(_ROUNDS_MAX):
            message = SaslAuthenticateRequest(token)
            body = await connection.ask(message, _AUTHENTICATE_VERSION, client_id)
            answer = decode(SaslAuthenticateResponse, _AUTHENTICATE_VERSION, body)
            if answer.error_code:
                raise SaslAuthenticationFailed(answer.error_message or "without a reason")
            lifetime_ms = answer.session_lifetime_ms
            token = exchange.send(bytes(answer.auth_bytes))
    except StopIteration:
        return lifetime_ms
    raise SaslAuthenticationFailed(f"the login is not finished after {_ROUNDS_MAX} messages")
