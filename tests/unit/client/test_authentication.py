"""Logins over a scripted connection: handshake, refusals, and sessions that are renewed."""

import pytest

from headrace.client.connection import Connection
from headrace.client.security import Sasl, Security
from headrace.errors import (
    IllegalSaslState,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import ApiVersionsRequest
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.unit.client.scripted import Script, ScriptedSocket, connected, versions

PLAIN = Security(sasl=Sasl(mechanism="PLAIN", username="ada", password="secret"))
KNOWN = {3: (0, 13), 17: (0, 1), 18: (0, 4), 36: (0, 2)}


def broker(
    answer: SaslAuthenticateResponse,
    handshake: SaslHandshakeResponse | None = None,
    known: dict[int, tuple[int, int]] | None = None,
) -> Script:
    def script(request: Message, version: int) -> Message | None:
        match request:
            case ApiVersionsRequest():
                return versions(known or KNOWN)
            case SaslHandshakeRequest():
                return handshake or SaslHandshakeResponse(mechanisms=["PLAIN"])
            case SaslAuthenticateRequest():
                assert request.auth_bytes == b"\0ada\0secret"
                return answer
            case _:
                return MetadataResponse(controller_id=7)

    return script


def log_in(script: Script) -> tuple[Connection, ScriptedSocket]:
    return connected(script, PLAIN)


def test_a_connection_is_authenticated_before_its_first_request() -> None:
    connection, opened = log_in(broker(SaslAuthenticateResponse()))
    assert opened.seen == [(18, 4), (17, 1), (36, 2)]
    assert connection.call(MetadataRequest(), MetadataResponse).controller_id == 7


def test_a_wrong_password_is_reported_with_the_brokers_text() -> None:
    refusal = SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password")
    with pytest.raises(
        SaslAuthenticationFailed,
        match="broker:9092 rejects the PLAIN login of 'ada': Invalid username or password",
    ):
        log_in(broker(refusal))


def test_an_unsupported_mechanism_is_reported_with_the_offered_ones() -> None:
    refusal = SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512", "GSSAPI"])
    with pytest.raises(UnsupportedSaslMechanism, match="it offers: GSSAPI, SCRAM-SHA-512"):
        log_in(broker(SaslAuthenticateResponse(), refusal))


@pytest.mark.parametrize("known", [{18: (0, 4), 3: (0, 13)}, KNOWN])
def test_a_listener_without_logins_is_recognised(known: dict[int, tuple[int, int]]) -> None:
    illegal = SaslHandshakeResponse(error_code=34)
    with pytest.raises(IllegalSaslState, match="does not accept SASL logins"):
        log_in(broker(SaslAuthenticateResponse(), illegal, known))


def test_a_broker_without_authentication_requests_is_recognised() -> None:
    with pytest.raises(UnsupportedVersion, match=r"older than Kafka 1\.0"):
        log_in(broker(SaslAuthenticateResponse(), None, {18: (0, 4), 17: (0, 0)}))


def test_a_session_is_renewed_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-368"""
    now = [100.0]
    monkeypatch.setattr("headrace.client.connection.time.monotonic", lambda: now[0])
    connection, opened = log_in(broker(SaslAuthenticateResponse(session_lifetime_ms=10_000)))
    for passed_s in (8.0, 1.0, 1.0):
        now[0] += passed_s
        connection.call(MetadataRequest(), MetadataResponse)
    assert [api for api, _ in opened.seen] == [18, 17, 36, 3, 17, 36, 3, 3]


def test_a_login_without_end_is_given_up() -> None:
    class Endless(Sasl, frozen=True):
        def exchange(self):  # type: ignore[no-untyped-def]
            while True:
                yield b"\0ada\0secret"

    with pytest.raises(SaslAuthenticationFailed, match="not finished after 8 messages"):
        connected(broker(SaslAuthenticateResponse()), Security(sasl=Endless(mechanism="PLAIN")))
