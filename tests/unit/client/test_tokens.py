"""Delegation tokens by the wire."""

import base64

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.tokens import Token, Tokens
from headrace.errors import DelegationTokenNotFound, DelegationTokenRequestNotAllowed, HeadraceError
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from headrace.protocol.schemas.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from headrace.protocol.schemas.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from headrace.protocol.schemas.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from headrace.security.principals import Principal
from tests.unit.client.scripted import connected, knowing_all

ADA, BOB = Principal("User", "ada"), Principal("User", "bob")
HMAC = b"\x00\xff secret"
SECRET = base64.b64encode(HMAC).decode()


class Issuing:
    """A broker with a token, which rejects everything of a client without a login."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, error: int = 0) -> None:
        self.asked: list[Message] = []
        self.error = error
        opened = connected(knowing_all(lambda request, _: self.answer(request)))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
        self.tokens: Tokens = Admin("broker:9092", timeout_s=1).tokens

    def answer(self, request: Message) -> Message:
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        self.asked.append(request)
        match request:
            case CreateDelegationTokenRequest():
                return CreateDelegationTokenResponse(
                    self.error, "User", "ada", "User", "bob", 10, 20, 30, "abc", HMAC
                )
            case DescribeDelegationTokenRequest():
                renewers = [DescribedDelegationTokenRenewer("User", "bob")]
                token = DescribedDelegationToken(
                    "User", "ada", "User", "bob", 10, 20, 30, "abc", HMAC, renewers
                )
                return DescribeDelegationTokenResponse(self.error, [token])
            case RenewDelegationTokenRequest():
                return RenewDelegationTokenResponse(self.error, 25)
        return ExpireDelegationTokenResponse(self.error, 15)


EXPECTED = Token(
    id="abc",
    secret=SECRET,
    owner="User:ada",
    requester="User:bob",
    renewers=["User:bob"],
    issued_at_ms=10,
    expires_at_ms=20,
    max_ends_at_ms=30,
)


def test_a_token_is_created_for_another_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    issuing = Issuing(monkeypatch)
    assert issuing.tokens.create(owner=ADA, renewers=[BOB], max_lifetime_ms=7) == EXPECTED
    (asked,) = issuing.asked
    assert isinstance(asked, CreateDelegationTokenRequest)
    assert (asked.owner_principal_type, asked.owner_principal_name) == ("User", "ada")
    assert [one.principal_name for one in asked.renewers] == ["bob"]
    assert asked.max_lifetime_ms == 7


def test_a_token_is_created_for_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    issuing = Issuing(monkeypatch)
    issuing.tokens.create()
    (asked,) = issuing.asked
    assert isinstance(asked, CreateDelegationTokenRequest)
    assert (asked.owner_principal_name, asked.max_lifetime_ms) == (None, -1)


def test_tokens_are_listed_by_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    issuing = Issuing(monkeypatch)
    assert issuing.tokens.describe([ADA]) == [EXPECTED] == issuing.tokens.describe()
    owners = [getattr(one, "owners", None) for one in issuing.asked]
    assert [None if one is None else len(one) for one in owners] == [1, None]


def test_a_token_is_renewed_and_expired_by_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    issuing = Issuing(monkeypatch)
    assert (issuing.tokens.renew(SECRET, 5), issuing.tokens.expire(SECRET)) == (25, 15)
    renewal, expiry = issuing.asked
    assert isinstance(renewal, RenewDelegationTokenRequest)
    assert isinstance(expiry, ExpireDelegationTokenRequest)
    assert (renewal.hmac, renewal.renew_period_ms) == (HMAC, 5)
    assert (expiry.hmac, expiry.expiry_time_period_ms) == (HMAC, -1)


def test_errors_are_raised_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Issuing(monkeypatch, error=DelegationTokenRequestNotAllowed.code).tokens
    for call in (tokens.create, tokens.describe, lambda: tokens.renew(SECRET)):
        with pytest.raises(DelegationTokenRequestNotAllowed):
            call()
    with pytest.raises(DelegationTokenNotFound):
        Issuing(monkeypatch, error=DelegationTokenNotFound.code).tokens.expire(SECRET)


def test_a_malformed_secret_is_rejected_without_showing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(HeadraceError) as caught:
        Issuing(monkeypatch).tokens.renew("not base64!")
    assert "not base64!" not in str(caught.value)


def test_the_text_of_a_token_has_no_secret() -> None:
    assert repr(EXPECTED) == "Token(abc, User:ada)"
