"""OAUTHBEARER from the server's side: messages, claims, signatures and key rotation."""

import json
import time
from typing import Any

import pytest
from joserfc import jwk, jwt

from headrace.errors import InvalidConfig, SaslAuthenticationFailed
from headrace.security.principals import USER, Principal
from headrace.security.sasl.jwks import Backoff, InvalidKeys, KeySet, UnknownKey, parse_keys
from headrace.security.sasl.oauthbearer import authenticate, unsecured_token
from headrace.security.sasl.oauthbearer_server import (
    OAuthBearerServer,
    TokenRejected,
    TokenRules,
    UnsecuredRules,
    login_by_claims,
    unsecured_rules,
    validate_unsecured,
)
from headrace.security.sasl.server import Login, LoginRejected

NOW_S = 1_700_000_000
NOW_MS = NOW_S * 1000
CLAIMS: dict[str, Any] = {"sub": "ada", "iat": NOW_S - 10, "exp": NOW_S + 60}
ADA = Login(Principal(USER, "ada"), NOW_MS + 60_000)


def server(reasons: list[str] | None = None) -> OAuthBearerServer:
    def validate(token: str) -> Login:
        if token != "good":
            raise TokenRejected("it is bad")
        return ADA

    return OAuthBearerServer(validate, (reasons if reasons is not None else []).append)


def test_a_valid_token_logs_its_subject_in() -> None:
    exchange = server()
    assert exchange.answer(next(authenticate("good", {"rack": "eu-1"}))) == b""
    assert exchange.login == Login(ADA.principal, ADA.expires_at_ms, {"rack": "eu-1"})


def test_a_rejected_token_fails_after_the_client_has_seen_the_error() -> None:
    reasons: list[str] = []
    exchange, client = server(reasons), authenticate("bad")
    error = exchange.answer(next(client))
    assert json.loads(error) == {"status": "invalid_token"}
    assert exchange.login is None
    with pytest.raises(SaslAuthenticationFailed, match="invalid_token"):
        exchange.answer(client.send(error))
    assert reasons == ["it is bad"]


def test_a_client_cannot_try_another_token_in_the_same_exchange() -> None:
    exchange = server()
    exchange.answer(next(authenticate("bad")))
    with pytest.raises(LoginRejected):
        exchange.answer(next(authenticate("good")))


def test_the_authorization_id_must_be_that_of_the_token() -> None:
    assert server().answer(b"n,a=ada,\1auth=Bearer good\1\1") == b""
    with pytest.raises(SaslAuthenticationFailed, match="different from the token"):
        server().answer(b"n,a=bob,\1auth=Bearer good\1\1")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\1",
        b"n,,",
        b"n,,\1\1",
        b"n,,\1auth=Basic good\1\1",
        b"n,,\1auth=Bearer\1\1",
        b"n,,\1auth=Bearer good",
        b"n,,\1auth=Bearer good\1auth=Bearer bad\1\1",
        b"n,,\1auth=Bearer good\1rack=\1\1",
        b"n,a=,,\1auth=Bearer good\1\1",
        b"y,,\1auth=Bearer good\1\1",
        b"n,,\1auth=Bearer g\xc3\xbcte\1\1",
        b"\xff",
    ],
)
def test_a_malformed_message_is_rejected(message: bytes) -> None:
    with pytest.raises(LoginRejected):
        server().answer(message)


def checked(rules: TokenRules | None = None, **changes: Any) -> Login:
    claims = {**CLAIMS, **changes}
    present = {name: value for name, value in claims.items() if value is not None}
    return login_by_claims(present, rules or TokenRules(), NOW_MS)


def test_claims_give_the_principal_and_the_end_of_the_session() -> None:
    assert checked() == ADA


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": NOW_S - 31},
        {"exp": "soon"},
        {"exp": True},
        {"exp": 1e300},
        {"iat": NOW_S + 100},
        {"nbf": NOW_S + 31},
        {"nbf": NOW_S + 100, "exp": NOW_S + 90},
        {"aud": "kafka"},
        {"aud": [7]},
        {"scope": 7},
        {"scope": [7]},
    ],
)
def test_a_token_with_invalid_claims_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(TokenRejected):
        checked(**changes)


def test_clocks_may_differ_by_the_skew() -> None:
    assert checked(iat=NOW_S - 99, exp=NOW_S - 29).expires_at_ms == (NOW_S - 29) * 1000
    assert checked(nbf=NOW_S + 29)


def test_issuer_and_audience_must_be_the_expected_ones() -> None:
    rules = TokenRules(expected_issuer="https://id", expected_audience=("kafka", "headrace"))
    assert checked(rules, iss="https://id", aud=["other", "headrace"])
    for changes in ({"iss": "https://id"}, {"iss": "x", "aud": "kafka"}, {"aud": "kafka"}):
        with pytest.raises(TokenRejected):
            checked(rules, **changes)


def test_a_token_may_name_groups() -> None:
    assert checked(groups=["dev", "ops"]).principal.groups == ("dev", "ops")
    assert checked(TokenRules(groups_claim_name="team"), team="dev").principal.groups == ("dev",)


def test_claims_may_have_other_names() -> None:
    rules = TokenRules(sub_claim_name="client_id", scope_claim_name="scp")
    assert checked(rules, client_id="app", scp=["a", "b"]).principal.name == "app"


RSA = jwk.RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
CURVE = jwk.ECKey.generate_key("P-256", {"kid": "ec"})


def document(*keys: Any) -> bytes:
    rows: list[Any] = [key.as_dict(private=False) for key in keys]
    return json.dumps({"keys": [*rows, {"kty": "oct", "k": "AAAA"}, {"kty": "new"}, 7]}).encode()


def signed(key: Any, algorithm: str, **header: str) -> str:
    return jwt.encode({"alg": algorithm, **header}, CLAIMS, key, algorithms=[algorithm])


def keys(*of: Any) -> KeySet:
    made = KeySet()
    made.replace(document(*of))
    return made


@pytest.mark.parametrize(
    "token",
    [
        signed(RSA, "RS256", kid="rsa"),
        signed(RSA, "PS512", kid="rsa"),
        signed(CURVE, "ES256", kid="ec"),
        signed(RSA, "RS256"),
    ],
)
def test_a_signed_token_is_verified(token: str) -> None:
    assert keys(RSA, CURVE).claims_of(token) == CLAIMS


def test_an_unknown_key_is_reported() -> None:
    with pytest.raises(UnknownKey) as unknown:
        keys(CURVE).claims_of(signed(RSA, "RS256", kid="rsa"))
    assert unknown.value.key_id == "rsa"


def test_a_key_of_another_kind_verifies_nothing() -> None:
    with pytest.raises(UnknownKey):
        keys(CURVE).claims_of(signed(RSA, "RS256", kid="ec"))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "..",
        "a.b.c",
        signed(RSA, "RS256", kid="rsa")[:-8],
        unsecured_token("ada", NOW_S),
        signed(jwk.OctKey.import_key("k" * 40), "HS256", kid="rsa"),
    ],
)
def test_an_unverifiable_token_is_rejected(token: str) -> None:
    with pytest.raises(TokenRejected):
        keys(RSA).claims_of(token)


def test_a_forged_token_is_rejected() -> None:
    head, _, signature = signed(RSA, "RS256", kid="rsa").split(".")
    _, claims, _ = unsecured_token("admin", NOW_S).split(".")
    with pytest.raises(TokenRejected):
        keys(RSA).claims_of(f"{head}.{claims}.{signature}")


def test_rotated_keys_replace_the_old_ones() -> None:
    rotating = keys(RSA)
    rotating.replace(document(CURVE))
    assert rotating.claims_of(signed(CURVE, "ES256", kid="ec")) == CLAIMS
    with pytest.raises(UnknownKey):
        rotating.claims_of(signed(RSA, "RS256", kid="rsa"))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys":[]}', b"<html>", b'{"keys":7}'])
def test_an_invalid_document_keeps_the_old_keys(content: bytes) -> None:
    rotating = keys(RSA)
    with pytest.raises(InvalidKeys):
        rotating.replace(content)
    assert rotating.claims_of(signed(RSA, "RS256", kid="rsa")) == CLAIMS


def test_keys_for_encryption_do_not_verify() -> None:
    row = {**CURVE.as_dict(private=False), "use": "enc"}
    with pytest.raises(InvalidKeys):
        parse_keys(json.dumps({"keys": [row]}).encode())


def test_an_unknown_key_id_asks_for_a_refresh_once_a_minute() -> None:
    known = keys(RSA)
    assert known.asks_for_refresh("new", NOW_MS)
    assert not known.asks_for_refresh("new", NOW_MS + 59_999)
    assert known.asks_for_refresh("new", NOW_MS + 60_000)
    assert not known.asks_for_refresh(None, NOW_MS)


def test_invented_key_ids_ask_for_a_bounded_number_of_refreshes() -> None:
    known = keys(RSA)
    assert sum(known.asks_for_refresh(f"id-{number}", NOW_MS) for number in range(1000)) == 16


def test_waits_for_keys_grow_up_to_a_bound() -> None:
    backoff = Backoff(100, 1000)
    assert [backoff.failed() for _ in range(6)] == [100, 200, 400, 800, 1000, 1000]


def test_unsecured_tokens_need_an_option_that_allows_them() -> None:
    assert unsecured_rules({"username": "x"}) is None
    assert unsecured_rules({"unsecuredValidatorPrincipalClaimName": ""}) == UnsecuredRules()
    options = {
        "unsecuredValidatorPrincipalClaimName": "user",
        "unsecuredValidatorScopeClaimName": "scp",
        "unsecuredValidatorRequiredScope": "a b",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
    }
    assert unsecured_rules(options) == UnsecuredRules("user", "scp", ("a", "b"), 3000)
    with pytest.raises(InvalidConfig):
        unsecured_rules({"unsecuredValidatorAllowableClockSkewMs": "-1"})


def test_an_unsecured_token_is_checked_like_kafkas() -> None:
    token = unsecured_token("ada", NOW_S, 60)
    assert validate_unsecured(token, UnsecuredRules(), NOW_MS) == ADA
    for now_ms, rules in (
        (NOW_MS + 60_000, UnsecuredRules()),
        (NOW_MS - 1000, UnsecuredRules()),
        (NOW_MS, UnsecuredRules(principal_claim_name="user")),
    ):
        with pytest.raises(TokenRejected):
            validate_unsecured(token, rules, now_ms)
    with pytest.raises(TokenRejected) as refused:
        validate_unsecured(token, UnsecuredRules(required_scope=("a", "b")), NOW_MS)
    assert refused.value.missing_scope == "a b"


@pytest.mark.parametrize("token", ["", "..", "a.b.", "e30.e30.", signed(RSA, "RS256")])
def test_other_tokens_are_no_unsecured_ones(token: str) -> None:
    with pytest.raises(TokenRejected):
        validate_unsecured(token, UnsecuredRules(), int(time.time() * 1000))
