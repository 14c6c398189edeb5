"""SCRAM from the server's side, against the examples of the RFCs and against false clients."""

import base64
import hashlib
import hmac

import pytest

from headrace.errors import SaslAuthenticationFailed
from headrace.security.principals import USER, Principal
from headrace.security.sasl.scram import Mechanism, authenticate
from headrace.security.sasl.scram_server import ScramServer, TokenCredential
from headrace.security.sasl.server import LoginRejected
from headrace.security.scram_credentials import credential_of
from tests.builders.credentials import Credentials

NOW_MS = 1_700_000_000_000
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"

# The example of RFC 7677, section 3.
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
VERDICT = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def server(
    credentials: Credentials, mechanism: Mechanism = Mechanism.SHA_256, nonce: str = SERVER_NONCE
) -> ScramServer:
    return ScramServer(
        mechanism,
        credentials,
        decoy_key=b"decoy",
        new_nonce=lambda: nonce,
        now_ms=lambda: NOW_MS,
    )


def users(mechanism: Mechanism = Mechanism.SHA_256, **passwords: str) -> Credentials:
    return Credentials(
        {name: credential_of(mechanism, text, SALT) for name, text in passwords.items()}
    )


def log_in(exchange: ScramServer, mechanism: Mechanism, name: str, password: str) -> None:
    client = authenticate(mechanism, name, password, "clients-nonce")
    message = next(client)
    while exchange.login is None:
        answer = exchange.answer(message)
        try:
            message = client.send(answer)
        except StopIteration:
            return


def test_the_example_of_the_rfc_is_answered_byte_for_byte() -> None:
    exchange = server(users(user="pencil"))
    assert exchange.answer(FIRST) == CHALLENGE
    assert exchange.answer(FINAL) == VERDICT
    assert exchange.login is not None
    assert exchange.login.principal == Principal(USER, "user")
    assert exchange.login.expires_at_ms is None


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("name", ["ada", "a=b,c", "grüße", "=2C"])
def test_our_client_and_our_server_agree(mechanism: Mechanism, name: str) -> None:
    exchange = server(users(mechanism, **{name: "secret"}), mechanism)
    log_in(exchange, mechanism, name, "secret")
    assert exchange.login is not None
    assert exchange.login.principal.name == name


def test_unknown_user_and_wrong_password_get_the_same_error() -> None:
    reasons = []
    for name in ("user", "nobody"):
        exchange = server(users(user="pencil"))
        with pytest.raises(LoginRejected) as rejected:
            log_in(exchange, Mechanism.SHA_256, name, "wrong")
        reasons.append(str(rejected.value))
        assert exchange.login is None
    assert len(set(reasons)) == 1


def test_an_unknown_user_gets_the_same_challenge_each_time() -> None:
    first, second, other = (
        server(users(user="pencil")).answer(FIRST.replace(b"user", name))
        for name in (b"eve", b"eve", b"mallory")
    )
    assert first == second
    assert first != other
    assert len(first) == len(CHALLENGE)


@pytest.mark.parametrize("salt", [b"1" * 8, bytes(range(100)), b"q81m9zh5ev0gkld3"])
def test_the_challenge_of_an_unknown_user_has_the_form_of_others(salt: bytes) -> None:
    known = Credentials({"user": credential_of(Mechanism.SHA_256, "x", salt, 8192)})
    fields = dict(
        part.split(b"=", 1) for part in server(known).answer(b"n,,n=eve,r=abc").split(b",")
    )
    shown = base64.b64decode(fields[b"s"])
    assert fields[b"i"] == b"8192"
    assert (len(shown), shown.isalnum()) == (len(salt), salt.isalnum())


def test_an_unknown_user_cannot_log_in_with_the_keys_of_the_decoy() -> None:
    exchange = server(Credentials())
    exchange.answer(FIRST)
    with pytest.raises(LoginRejected):
        exchange.answer(FINAL)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=user",
        b"n,,n=,r=abc",
        b"n,,n=a=b,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,m=ext,n=user,r=abc",
        b"n,,n=user,r=abc,=x",
        b"n,,n=" + b"a" * 2000 + b",r=abc",
        FINAL,
    ],
)
def test_a_malformed_first_message_is_rejected(message: bytes) -> None:
    with pytest.raises(LoginRejected):
        server(users(user="pencil")).answer(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        FIRST,
        FINAL.replace(b"c=biws", b"c=eSws"),
        FINAL.replace(b"r=rOpr", b"r=else"),
        FINAL.replace(b"p=dHz", b"p=dHx"),
        FINAL.replace(b"p=dHz", b"p=dH*"),
        FINAL.replace(b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"AAAA"),
        FINAL.replace(b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"="),
        FINAL[:-20],
    ],
)
def test_a_wrong_final_message_is_rejected(message: bytes) -> None:
    exchange = server(users(user="pencil"))
    exchange.answer(FIRST)
    with pytest.raises(LoginRejected):
        exchange.answer(message)
    assert exchange.login is None


def test_a_recorded_login_cannot_be_replayed() -> None:
    exchange = server(users(user="pencil"), nonce="another-nonce")
    exchange.answer(FIRST)
    with pytest.raises(LoginRejected):
        exchange.answer(FINAL)


def test_an_exchange_does_not_allow_a_second_guess() -> None:
    exchange = server(users(user="pencil"))
    exchange.answer(FIRST)
    with pytest.raises(LoginRejected):
        exchange.answer(FINAL.replace(b"p=dHz", b"p=dHx"))
    with pytest.raises(LoginRejected, match="over"):
        exchange.answer(FINAL)


def test_a_user_cannot_log_in_as_another() -> None:
    with pytest.raises(SaslAuthenticationFailed, match="different from username"):
        server(users(user="pencil")).answer(b"n,a=admin,n=user,r=abc")


def tokens(expires_at_ms: int) -> Credentials:
    keys = credential_of(Mechanism.SHA_256, "hmac", SALT)
    return Credentials(tokens={"t1": TokenCredential(keys, Principal(USER, "ada"), expires_at_ms)})


def test_a_delegation_token_logs_its_owner_in() -> None:
    exchange = server(tokens(NOW_MS + 1000))
    first = b"n=t1,r=abc,tokenauth=true"
    challenge = exchange.answer(b"n,," + first)
    exchange.answer(final_message(b"hmac", first, challenge))
    assert exchange.login is not None
    assert exchange.login.principal == Principal(USER, "ada", is_token_authenticated=True)
    assert exchange.login.expires_at_ms == NOW_MS + 1000


@pytest.mark.parametrize("first", [b"n=t1,r=abc,tokenauth=true", b"n=t2,r=abc,tokenauth=true"])
def test_an_expired_or_unknown_token_is_rejected_after_the_proof(first: bytes) -> None:
    exchange = server(tokens(NOW_MS))
    challenge = exchange.answer(b"n,," + first)
    with pytest.raises(LoginRejected, match="unknown user or wrong password"):
        exchange.answer(final_message(b"hmac", first, challenge))


def test_a_token_is_no_user_and_a_user_is_no_token() -> None:
    known = tokens(NOW_MS + 1000)
    for first in (b"n=t1,r=abc", b"n=t1,r=abc,tokenauth=false"):
        exchange = server(known)
        challenge = exchange.answer(b"n,," + first)
        with pytest.raises(LoginRejected):
            exchange.answer(final_message(b"hmac", first, challenge))


def final_message(password: bytes, first: bytes, challenge: bytes) -> bytes:
    """The proof of a client, computed apart from our client."""
    fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
    unproven = b"c=biws,r=" + fields[b"r"]
    salted = hashlib.pbkdf2_hmac(
        "sha256", password, base64.b64decode(fields[b"s"]), int(fields[b"i"])
    )
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signed = b",".join((first, challenge, unproven))
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    return unproven + b",p=" + base64.b64encode(proof)
