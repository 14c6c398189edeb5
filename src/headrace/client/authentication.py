"""SASL over Kafka's protocol: a handshake that names the mechanism, then an exchange of tokens.

A broker may limit the session's lifetime (KIP-368). Then the client authenticates again on the
open connection before the session expires, so that no request fails.
"""

from typing import Protocol, TypeVar

from headrace.client.addresses import Address
from headrace.client.security import Sasl
from headrace.errors import (
    IllegalSaslState,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
    error_for,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

RENEWED_AFTER = 0.85
"""Share of a session's lifetime after which it is renewed, as in Java's clients."""

_ROUNDS_MAX = 8

Response = TypeVar("Response", bound=Message)


class Speaker(Protocol):
    """The part of a connection that authentication uses."""

    address: Address

    def understands(self, request: type[Message]) -> bool: ...

    def version_of(self, request: Message) -> int: ...

    def exchange(self, request: Message, response: type[Response]) -> Response: ...


def authenticate(speaker: Speaker, sasl: Sasl) -> float | None:
    """Authenticate; return the seconds until authentication must be repeated, if ever."""
    _shake_hands(speaker, sasl.mechanism)
    exchange = sasl.exchange()
    lifetime_ms = 0
    try:
        token = next(exchange)
        for _ in range(_ROUNDS_MAX):
            answer = speaker.exchange(
                SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse
            )
            if answer.error_code:
                raise error_for(answer.error_code, answer.error_message or "without a reason")
            lifetime_ms = answer.session_lifetime_ms
            token = exchange.send(bytes(answer.auth_bytes))
        raise SaslAuthenticationFailed(f"not finished after {_ROUNDS_MAX} messages")
    except StopIteration:
        return lifetime_ms / 1000 * RENEWED_AFTER if lifetime_ms > 0 else None
    except SaslAuthenticationFailed as error:
        who = f" of {sasl.username!r}" if sasl.username else ""
        raise SaslAuthenticationFailed(
            f"{speaker.address} rejects the {sasl.mechanism} login{who}: {error}"
        ) from error


def _shake_hands(speaker: Speaker, mechanism: str) -> None:
    request = SaslHandshakeRequest(mechanism=mechanism)
    if not speaker.understands(SaslHandshakeRequest):
        raise IllegalSaslState(f"the listener at {speaker.address} does not accept SASL logins")
    if not speaker.understands(SaslAuthenticateRequest) or not speaker.version_of(request):
        raise UnsupportedVersion(
            f"the broker at {speaker.address} is older than Kafka 1.0 and uses a form of SASL"
            " that is not supported"
        )
    answer = speaker.exchange(request, SaslHandshakeResponse)
    if answer.error_code == UnsupportedSaslMechanism.code:
        offered = ", ".join(sorted(answer.mechanisms)) or "none"
        raise UnsupportedSaslMechanism(
            f"{speaker.address} does not offer sasl.mechanism {mechanism}; it offers: {offered}"
        )
    if answer.error_code == IllegalSaslState.code:
        raise IllegalSaslState(f"the listener at {speaker.address} does not accept SASL logins")
    if answer.error_code:
        raise error_for(answer.error_code, f"{speaker.address} rejects the SASL handshake")
