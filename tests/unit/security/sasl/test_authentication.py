"""The requests before a login: their order, their answers, and the frames that get none."""

import base64
import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_messages import request_type_of
from headrace.protocol.codec import decode
from headrace.protocol.framing import RequestHeader, encode_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.security.principals import USER, Principal
from headrace.security.sasl.authentication import (
    Authentication,
    Mechanisms,
    NoLoginRequest,
    Phase,
    Session,
    Step,
)
from headrace.security.sasl.plain import PlainServer
from headrace.security.sasl.scram import Mechanism
from headrace.security.sasl.scram import authenticate as scram_client
from headrace.security.sasl.scram_server import ScramServer
from headrace.security.sasl.server import Login
from headrace.security.scram_credentials import credential_of
from tests.builders.credentials import Credentials
from tests.builders.messages import sample

NOW_MS = 1_700_000_000_000
ADA = b"\0ada\0secret"
KEYS = credential_of(Mechanism.SHA_256, "secret", base64.b64decode("c2FsdHNhbHQ="))


class TokenLogin:
    """A mechanism whose logins end."""

    def __init__(self) -> None:
        self.login: Login | None = None

    def answer(self, message: bytes) -> bytes:
        self.login = Login(Principal(USER, message.decode()), NOW_MS + 60_000)
        return b""


def mechanisms(max_reauth_ms: Mapping[str, int]) -> Mechanisms:
    return Mechanisms(
        {
            "PLAIN": lambda: PlainServer({"ada": "secret", "bob": "secret"}.get),
            "SCRAM-SHA-256": lambda: ScramServer(
                Mechanism.SHA_256,
                Credentials({"ada": KEYS}),
                decoy_key=b"k",
                new_nonce=lambda: "server",
                now_ms=lambda: NOW_MS,
            ),
            "TOKEN": TokenLogin,
        },
        max_reauth_ms,
    )


def versions(header: RequestHeader, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    return ApiVersionsResponse(35 if request is None else 0)


def fresh(
    previous: Session | None = None, limits: Mapping[str, int] | None = None
) -> Authentication:
    return Authentication(mechanisms(limits or {}), versions, lambda: NOW_MS, previous)


def frame(request: Message, version: int) -> memoryview:
    return memoryview(encode_request(request, version, 7, "client"))[4:]


def handshake(mechanism: str, version: int = 1) -> memoryview:
    return frame(SaslHandshakeRequest(mechanism), version)


def token(content: bytes, version: int = 2) -> memoryview:
    return frame(SaslAuthenticateRequest(content), version)


def answer_in(step: Step, response: type[Message], version: int) -> Message:
    assert step.answer is not None
    body = memoryview(step.answer)[4:]
    key = response.API_KEY
    correlation_id, position = read_response_header(body, key, version)
    assert correlation_id == 7
    return decode(response, version, body[position:])


def logged_in(*frames: memoryview, start: Authentication | None = None) -> Step:
    """Take frames, of which the last one completes the login."""
    authentication = start or fresh()
    steps = [authentication.take(one) for one in frames]
    assert steps[-1].session is not None
    return steps[-1]


@pytest.mark.parametrize("version", SaslAuthenticateRequest.VERSIONS)
def test_a_client_logs_in_after_asking_for_versions(version: int) -> None:
    step = logged_in(frame(ApiVersionsRequest(), 3), handshake("PLAIN"), token(ADA, version))
    answer = answer_in(step, SaslAuthenticateResponse, version)
    assert answer == SaslAuthenticateResponse(error_message="")
    assert step.session is not None
    assert step.session.login.principal == Principal(USER, "ada")
    assert step.session.lifetime_ms is None


def test_a_handshake_lists_the_mechanisms() -> None:
    answer = answer_in(fresh().take(handshake("PLAIN")), SaslHandshakeResponse, 1)
    assert answer == SaslHandshakeResponse(0, ["PLAIN", "SCRAM-SHA-256", "TOKEN"])


def test_an_unsupported_mechanism_fails_with_the_list() -> None:
    step = fresh().take(handshake("GSSAPI"))
    answer = answer_in(step, SaslHandshakeResponse, 1)
    assert answer == SaslHandshakeResponse(
        UnsupportedSaslMechanism.code, ["PLAIN", "SCRAM-SHA-256", "TOKEN"]
    )
    assert step.failure is not None


def test_tokens_after_a_handshake_v0_have_no_request_around_them() -> None:
    step = logged_in(handshake("PLAIN", 0), memoryview(ADA))
    assert step.answer == b"\0\0\0\0"


def test_a_login_may_take_several_messages() -> None:
    authentication = fresh()
    authentication.take(handshake("SCRAM-SHA-256"))
    client = scram_client(Mechanism.SHA_256, "ada", "secret", "client")
    step = authentication.take(token(next(client)))
    assert step.session is None
    challenge = answer_in(step, SaslAuthenticateResponse, 2)
    assert isinstance(challenge, SaslAuthenticateResponse)
    step = authentication.take(token(client.send(bytes(challenge.auth_bytes))))
    assert step.session is not None


def test_the_text_of_a_failed_login_does_not_show_what_was_wrong() -> None:
    texts = set()
    for name in ("ada", "eve"):
        authentication = fresh()
        authentication.take(handshake("SCRAM-SHA-256"))
        client = scram_client(Mechanism.SHA_256, name, "wrong", "client")
        challenge = answer_in(authentication.take(token(next(client))), SaslAuthenticateResponse, 2)
        assert isinstance(challenge, SaslAuthenticateResponse)
        step = authentication.take(token(client.send(bytes(challenge.auth_bytes))))
        answer = answer_in(step, SaslAuthenticateResponse, 2)
        assert isinstance(answer, SaslAuthenticateResponse)
        assert answer.error_code == SaslAuthenticationFailed.code
        texts.add(answer.error_message)
    assert texts == {
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256"
    }


def test_another_request_during_the_login_gets_illegal_sasl_state() -> None:
    authentication = fresh()
    authentication.take(handshake("PLAIN"))
    step = authentication.take(frame(HeartbeatRequest("g", 1, "m"), 4))
    answer = answer_in(step, HeartbeatResponse, 4)
    assert isinstance(answer, HeartbeatResponse)
    assert answer.error_code == IllegalSaslState.code
    assert step.failure is not None
    assert authentication.phase is Phase.FAILED


@pytest.mark.parametrize(
    "frames",
    [
        (token(ADA),),
        (frame(ApiVersionsRequest(), 3), frame(ApiVersionsRequest(), 3)),
        (frame(ApiVersionsRequest(), 3), token(ADA)),
        (frame(HeartbeatRequest(), 0),),
        (memoryview(b"\x60\x82"),),
        (memoryview(b""),),
        (memoryview(bytes(handshake("PLAIN"))[:-3]),),
        (memoryview(b"\0\x11\0\x02" + bytes(handshake("PLAIN"))[4:]),),
    ],
)
def test_a_request_out_of_order_gets_no_answer(frames: tuple[memoryview, ...]) -> None:
    authentication = fresh()
    for one in frames[:-1]:
        authentication.take(one)
    with pytest.raises(NoLoginRequest):
        authentication.take(frames[-1])


@pytest.mark.parametrize("again", [handshake("PLAIN"), handshake("PLAIN", 0)])
def test_a_second_handshake_fails(again: memoryview) -> None:
    authentication = fresh()
    authentication.take(handshake("PLAIN"))
    assert authentication.take(again).failure is not None
    with pytest.raises(NoLoginRequest):
        authentication.take(token(ADA))


def test_a_failed_or_complete_authentication_takes_no_more_frames() -> None:
    for content in (ADA, b"\0ada\0wrong"):
        authentication = fresh()
        authentication.take(handshake("PLAIN"))
        authentication.take(token(content))
        with pytest.raises(NoLoginRequest):
            authentication.take(token(ADA))


def test_an_unknown_version_of_api_versions_may_be_asked_again() -> None:
    authentication = fresh()
    unknown = bytearray(frame(ApiVersionsRequest(), 3))
    unknown[2:4] = b"\0\x63"
    answer = answer_in(authentication.take(memoryview(bytes(unknown))), ApiVersionsResponse, 0)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == 35
    authentication.take(frame(ApiVersionsRequest(), 0))
    with pytest.raises(NoLoginRequest):
        authentication.take(frame(ApiVersionsRequest(), 0))


@pytest.mark.parametrize(
    ("mechanism", "content", "limits", "lifetime_ms"),
    [
        ("PLAIN", ADA, {"PLAIN": 5000}, 5000),
        ("PLAIN", ADA, {"PLAIN": 0}, None),
        ("TOKEN", b"ada", {"TOKEN": 5000}, 5000),
        ("TOKEN", b"ada", {"TOKEN": 90_000}, 60_000),
        ("TOKEN", b"ada", {}, 60_000),
    ],
)
def test_a_session_lives_as_long_as_token_and_setting_allow(
    mechanism: str, content: bytes, limits: dict[str, int], lifetime_ms: int | None
) -> None:
    step = logged_in(handshake(mechanism), token(content), start=fresh(limits=limits))
    assert step.session is not None
    assert step.session.lifetime_ms == lifetime_ms
    answer = answer_in(step, SaslAuthenticateResponse, 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    assert answer.session_lifetime_ms == (lifetime_ms or 0)


PREVIOUS = Session("PLAIN", Login(Principal(USER, "ada")), 5000)


def test_a_session_is_renewed_by_the_same_mechanism_and_principal() -> None:
    step = logged_in(handshake("PLAIN"), token(ADA), start=fresh(PREVIOUS))
    assert step.session is not None


def test_a_session_cannot_change_its_principal() -> None:
    authentication = fresh(PREVIOUS)
    authentication.take(handshake("PLAIN"))
    answer = answer_in(authentication.take(token(b"\0bob\0secret")), SaslAuthenticateResponse, 2)
    assert answer == SaslAuthenticateResponse(
        SaslAuthenticationFailed.code,
        "Cannot change principals during re-authentication from User.ada: User.bob",
    )


def test_a_session_cannot_change_its_mechanism() -> None:
    authentication = fresh(PREVIOUS)
    assert authentication.take(handshake("TOKEN")).failure is None
    step = authentication.take(token(b"ada"))
    assert (step.answer, step.session) == (None, None)
    assert step.failure is not None


def test_a_renewal_does_not_begin_with_versions() -> None:
    with pytest.raises(NoLoginRequest):
        fresh(PREVIOUS).take(frame(ApiVersionsRequest(), 3))


REQUESTS = [
    (request, version)
    for key in ApiKey
    if (request := request_type_of(key)) is not None
    for version in request.VERSIONS
]


@pytest.mark.parametrize("after_handshake", [False, True])
def test_no_request_of_any_api_is_served_before_the_login(*, after_handshake: bool) -> None:
    for request, version in REQUESTS:
        if request.API_KEY in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            continue
        if after_handshake and request.API_KEY == ApiKey.SASL_AUTHENTICATE:
            continue
        authentication = fresh()
        if after_handshake:
            authentication.take(handshake("PLAIN"))
        try:
            step = authentication.take(frame(sample(request, version, "any"), version))
        except NoLoginRequest:
            continue
        assert step.session is None
        assert step.failure is not None


def is_over(authentication: Authentication, content: bytes) -> bool:
    """Take a frame; return whether the connection would end."""
    try:
        step = authentication.take(memoryview(content))
    except NoLoginRequest:
        return True
    return step.failure is not None


@given(frames=st.lists(st.binary(max_size=200), max_size=5), begins=st.booleans())
def test_random_bytes_never_log_in(*, frames: list[bytes], begins: bool) -> None:
    authentication = fresh()
    if begins:
        authentication.take(handshake("SCRAM-SHA-256", 0))
    for content in frames:
        if is_over(authentication, content):
            break
    assert authentication.phase is not Phase.COMPLETE


@given(
    seed=st.integers(0, 1 << 32),
    position=st.integers(0, 80),
    byte=st.integers(0, 255),
    order=st.permutations(range(4)),
)
def test_changed_and_reordered_logins_end_in_a_known_phase(
    seed: int, position: int, byte: int, order: list[int]
) -> None:
    frames = [
        bytearray(one)
        for one in (
            frame(ApiVersionsRequest("c", "1"), 3),
            handshake("PLAIN", random.Random(seed).randrange(2)),
            token(b"\0ada\0wrong"),
            bytearray(b"\0ada\0wrong"),
        )
    ]
    changed = frames[seed % 4]
    changed[position % len(changed)] = byte
    authentication = fresh()
    for number in order:
        if is_over(authentication, bytes(frames[number])):
            break
    assert authentication.phase is not Phase.COMPLETE
