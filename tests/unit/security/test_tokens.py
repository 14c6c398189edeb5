"""Delegation tokens: their secrets, who sees them, and the credentials that clients log in with."""

import hashlib
import hmac

import pytest

from headrace.protocol.schemas.records.metadata import DelegationTokenRecord
from headrace.security.principals import ANONYMOUS, Principal
from headrace.security.tokens import (
    is_expired,
    may_carry_tokens,
    may_have_tokens,
    token_secret,
    token_with_secret,
    visible,
)

KEY = "cluster secret"
ADA, BOB, EVE = (Principal("User", name) for name in ("ada", "bob", "eve"))
BY_TOKEN = Principal("User", "ada", is_token_authenticated=True)


def a_token(
    token_id: str = "t", owner: str = "User:ada", **fields: object
) -> DelegationTokenRecord:
    token = DelegationTokenRecord(
        owner=owner,
        requester=owner,
        issue_timestamp=0,
        max_timestamp=300,
        expiration_timestamp=200,
        token_id=token_id,
    )
    for name, value in fields.items():
        setattr(token, name, value)
    return token


def test_the_secret_is_kafkas_hmac_of_the_id() -> None:
    expected = hmac.new(KEY.encode(), b"abc", hashlib.sha512).digest()
    assert token_secret(KEY, "abc") == expected


def test_a_token_is_found_by_its_secret() -> None:
    tokens = {name: a_token(name) for name in ("a", "b")}
    assert token_with_secret(tokens, KEY, token_secret(KEY, "b")) is tokens["b"]
    assert token_with_secret(tokens, KEY, token_secret("another key", "b")) is None
    assert token_with_secret(tokens, KEY, b"") is None


@pytest.mark.parametrize(("now_ms", "expected"), [(199, False), (200, False), (201, True)])
def test_a_token_is_valid_up_to_its_end(now_ms: int, expected: bool) -> None:
    assert is_expired(a_token(), now_ms) == expected
    assert is_expired(a_token(max_timestamp=200, expiration_timestamp=300), now_ms) == expected


@pytest.mark.parametrize(
    ("protocol", "principal", "expected"),
    [
        ("PLAINTEXT", ADA, False),
        ("SSL", ANONYMOUS, False),
        ("SSL", ADA, True),
        ("SASL_PLAINTEXT", ADA, True),
        ("SASL_SSL", ADA, True),
        ("SASL_SSL", BY_TOKEN, False),
        ("SSL", BY_TOKEN, False),
    ],
)
def test_tokens_need_an_authenticated_connection_that_is_not_itself_by_a_token(
    protocol: str, principal: Principal, expected: bool
) -> None:
    assert may_carry_tokens(protocol, principal) == expected


def test_the_controller_checks_the_principal_alone() -> None:
    assert [may_have_tokens(one) for one in (ADA, ANONYMOUS, BY_TOKEN)] == [True, False, False]


def test_owner_requester_and_renewers_see_a_token_and_others_need_a_right() -> None:
    token = a_token(requester="User:bob", renewers=["User:carl"])

    def seen(name: str, *, has_right: bool = False) -> bool:
        principal = Principal("User", name)
        return bool(list(visible([token], principal, None, lambda _: has_right)))

    assert [seen(name) for name in ("ada", "bob", "carl", "eve")] == [True, True, True, False]
    assert seen("eve", has_right=True)


def test_a_filter_selects_the_tokens_of_owners_requesters_and_renewers() -> None:
    tokens = [
        a_token("1"),
        a_token("2", "User:bob"),
        a_token("3", "User:bob", renewers=["User:ada"]),
    ]
    found = [
        [one.token_id for one in visible(tokens, EVE, owners, lambda _: True)]
        for owners in (None, [ADA], [BOB], [ADA, BOB], [EVE], [])
    ]
    assert found == [["1", "2", "3"], ["1", "3"], ["2", "3"], ["1", "2", "3"], [], []]


def test_a_right_to_a_token_does_not_widen_the_filter() -> None:
    assert list(visible([a_token()], ADA, [BOB], lambda _: True)) == []
