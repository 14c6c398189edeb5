"""Tokens shown to a broker, and its refusals."""

import base64
import json

import pytest

from headrace.errors import SaslAuthenticationFailed
from headrace.security.sasl.oauthbearer import authenticate, unsecured_token


def test_a_token_that_is_taken_ends_the_exchange() -> None:
    exchange = authenticate("abc", {"cluster": "a"})
    assert next(exchange) == b"n,,\x01auth=Bearer abc\x01cluster=a\x01\x01"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_refusal_is_confirmed_and_then_raised() -> None:
    exchange = authenticate("abc")
    next(exchange)
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslAuthenticationFailed, match="invalid_token"):
        exchange.send(b"")


def test_an_unsecured_token_names_its_principal_and_its_end() -> None:
    header, claims, signature = unsecured_token("ada", 1000.5, 60).split(".")
    assert signature == ""
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none", "typ": "JWT"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {
        "sub": "ada",
        "iat": 1000,
        "exp": 1060,
    }
