"""SCRAM from the client's side, against the RFC's example and against false servers."""

import pytest

from headrace.errors import SaslAuthenticationFailed
from headrace.security.sasl.scram import Mechanism, authenticate

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
PROOF = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
VERDICT = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_both_sides_prove_the_password() -> None:
    exchange = authenticate(Mechanism.SHA_256, "user", "pencil", NONCE)
    assert next(exchange) == b"n,,n=user,r=" + NONCE.encode()
    assert exchange.send(CHALLENGE) == PROOF
    with pytest.raises(StopIteration):
        exchange.send(VERDICT)


def test_a_name_may_contain_separators_of_fields() -> None:
    assert next(authenticate(Mechanism.SHA_512, "a=b,c", "", "n")) == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (b"v=AAAA", "does not have the password"),
        (b"", "does not have the password"),
        (b"e=unknown-user", "rejects the login: unknown-user"),
    ],
)
def test_a_server_without_a_proof_is_not_trusted(verdict: bytes, told: str) -> None:
    exchange = authenticate(Mechanism.SHA_256, "user", "pencil", NONCE)
    next(exchange)
    exchange.send(CHALLENGE)
    with pytest.raises(SaslAuthenticationFailed, match=told):
        exchange.send(verdict)


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff\xfe",
        CHALLENGE.replace(b"i=4096", b"i=many"),
        CHALLENGE.replace(b"s=W22", b"s=*"),
        CHALLENGE.replace(b"r=rOpr", b"r=else"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        CHALLENGE.replace(b"i=4096", b"i=1"),
        CHALLENGE.replace(b"i=4096", b"i=2000000000"),
    ],
)
def test_a_challenge_that_makes_no_sense_ends_the_exchange(challenge: bytes) -> None:
    exchange = authenticate(Mechanism.SHA_256, "user", "pencil", NONCE)
    next(exchange)
    with pytest.raises(SaslAuthenticationFailed):
        exchange.send(challenge)
