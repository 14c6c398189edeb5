"""The server's side of OAUTHBEARER (RFC 7628): a token that a third party has issued.

A rejected token is answered with an error in JSON. The client must acknowledge it with one more
message before the exchange fails. The checks are those of Kafka's validators: signed tokens against
a set of keys, and unsigned ones for development only, where the settings say so.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from headrace.errors import HeadraceError, InvalidConfig, SaslAuthenticationFailed
from headrace.security.principals import USER, Principal
from headrace.security.sasl.server import Login, LoginRejected, decoded

_SEPARATOR = "\x01"
_OPENING = re.compile(r"n,(?:a=(?P<authorization>(?:[\x01-\x7f](?<![=,])|=2C|=3D)+))?,")
_PAIR = re.compile(r"(?P<name>[A-Za-z]+)=(?P<value>[\x21-\x7e \t\r\n]+)")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")
_NUMBER_MAX = 1 << 53


class TokenRejected(HeadraceError):
    """A token that is not accepted; the text is for this node's log only."""

    def __init__(self, text: str, *, missing_scope: str | None = None) -> None:
        super().__init__(text)
        self.missing_scope = missing_scope


Validate = Callable[[str], Login]
"""Returns the login of a token, or raises `TokenRejected`."""


class OAuthBearerServer:
    """One login by a token."""

    def __init__(self, validate: Validate, rejected: Callable[[str], None]) -> None:
        """`rejected` receives the reason of a rejected token, for the log."""
        self._validate = validate
        self._rejected = rejected
        self._error: str | None = None
        self.login: Login | None = None

    def answer(self, message: bytes) -> bytes:
        if self.login is not None:
            raise LoginRejected("the OAUTHBEARER exchange is over")
        if self._error is not None:
            if message == _SEPARATOR.encode():
                raise SaslAuthenticationFailed(self._error)
            raise LoginRejected("the client ignores that its token is rejected")
        first = _parse(decoded(message))
        try:
            login = self._validate(first.token)
        except TokenRejected as error:
            self._rejected(str(error))
            self._error = _error_json(error.missing_scope)
            return self._error.encode()
        if first.authorization_id not in ("", login.principal.name):
            raise SaslAuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from the token's principal name"
            )
        extensions = first.extensions
        self.login = Login(login.principal, login.expires_at_ms, extensions)
        return b""


class _First(msgspec.Struct, frozen=True):
    """The content of the client's first message."""

    authorization_id: str
    token: str
    extensions: Mapping[str, str]


def _parse(text: str) -> _First:
    opening, _, rest = text.partition(_SEPARATOR)
    header = _OPENING.fullmatch(opening)
    if header is None or not rest.endswith(_SEPARATOR):
        raise LoginRejected("the client's first OAUTHBEARER message is malformed")
    pairs: dict[str, str] = {}
    for part in rest[:-1].split(_SEPARATOR):
        if not part:
            continue
        pair = _PAIR.fullmatch(part)
        if pair is None or pair["name"] in pairs:
            raise LoginRejected("the client's first OAUTHBEARER message has an invalid pair")
        pairs[pair["name"]] = pair["value"]
    auth = _AUTH.fullmatch(pairs.pop("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise LoginRejected("the client's first OAUTHBEARER message has no bearer token")
    authorization = (header["authorization"] or "").replace("=2C", ",").replace("=3D", "=")
    return _First(authorization, auth["token"], pairs)


def _error_json(missing_scope: str | None) -> str:
    if missing_scope is None:
        return '{"status":"invalid_token"}'
    return msgspec.json.encode({"status": "insufficient_scope", "scope": missing_scope}).decode()


class TokenRules(msgspec.Struct, frozen=True):
    """The conditions for the claims of a signed token, under Kafka's property names."""

    expected_issuer: str | None = None
    expected_audience: tuple[str, ...] = ()
    clock_skew_seconds: int = 30
    scope_claim_name: str = "scope"
    sub_claim_name: str = "sub"
    groups_claim_name: str = "groups"


def login_by_claims(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> Login:
    """Check the claims of a token whose signature is valid."""
    skew_ms = rules.clock_skew_seconds * 1000
    expires_ms = _required_ms(claims, "exp")
    issued_ms = _required_ms(claims, "iat")
    begins_ms = _moment_ms(claims, "nbf")
    if now_ms - skew_ms >= expires_ms:
        raise TokenRejected("the token has expired")
    if begins_ms is not None and now_ms + skew_ms < begins_ms:
        raise TokenRejected("the token is not valid yet")
    if expires_ms < issued_ms or (begins_ms is not None and expires_ms < begins_ms):
        raise TokenRejected("the token expires before it becomes valid")
    if rules.expected_issuer is not None and claims.get("iss") != rules.expected_issuer:
        raise TokenRejected("the token has another issuer than sasl.oauthbearer.expected.issuer")
    _check_audience(claims.get("aud"), rules.expected_audience)
    _words(claims, rules.scope_claim_name)
    subject = _subject(claims, rules.sub_claim_name)
    groups = _words(claims, rules.groups_claim_name)
    return Login(Principal(USER, subject, groups=groups), expires_ms)


def _check_audience(audience: Any, expected: tuple[str, ...]) -> None:
    """As in Kafka, a token for some audience needs a setting that names this broker's."""
    named = [audience] if isinstance(audience, str) else audience
    if named is None:
        named = []
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise TokenRejected("the audience of the token is not text")
    if (named or expected) and not set(named) & set(expected):
        raise TokenRejected("the token is not for one of sasl.oauthbearer.expected.audience")


def _subject(claims: Mapping[str, Any], name: str) -> str:
    subject = claims.get(name)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRejected(f"the token has no claim {name!r} with the name of the principal")
    return subject


def _words(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a claim that is a list of texts, or one text with spaces between them."""
    claim = claims.get(name)
    found = claim.split() if isinstance(claim, str) else ([] if claim is None else claim)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TokenRejected(f"the claim {name!r} of the token is not text")
    return tuple(found)


def _required_ms(claims: Mapping[str, Any], name: str) -> int:
    moment_ms = _moment_ms(claims, name)
    if moment_ms is None:
        raise TokenRejected(f"the token has no claim {name!r}")
    return moment_ms


def _moment_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a time of the claims, which are seconds and may be fractions."""
    seconds = claims.get(name)
    if seconds is None:
        return None
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= _NUMBER_MAX:
        raise TokenRejected(f"the claim {name!r} of the token is not a time")
    return int(seconds * 1000)


class UnsecuredRules(msgspec.Struct, frozen=True):
    """The conditions for unsigned tokens: the options `unsecuredValidator*` of JAAS."""

    principal_claim_name: str = "sub"
    scope_claim_name: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0


_UNSECURED = "unsecuredValidator"


def unsecured_rules(options: Mapping[str, str]) -> UnsecuredRules | None:
    """Return the rules that JAAS options state; None if they do not allow unsigned tokens."""
    given = {name: text.strip() for name, text in options.items() if name.startswith(_UNSECURED)}
    if not given:
        return None
    skew = given.get(f"{_UNSECURED}AllowableClockSkewMs") or "0"
    if not (skew.isascii() and skew.isdecimal()):
        raise InvalidConfig(f"{_UNSECURED}AllowableClockSkewMs must be a number from 0 on")
    return UnsecuredRules(
        given.get(f"{_UNSECURED}PrincipalClaimName") or "sub",
        given.get(f"{_UNSECURED}ScopeClaimName") or "scope",
        tuple((given.get(f"{_UNSECURED}RequiredScope") or "").split()),
        int(skew),
    )


def validate_unsecured(token: str, rules: UnsecuredRules, now_ms: int) -> Login:
    """Check an unsigned token; anybody can create one, so this is for development only."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise TokenRejected("the token is not an unsigned JWT")
    header, claims = _json_part(parts[0]), _json_part(parts[1])
    if header.get("alg") != "none":
        raise TokenRejected("the token is not an unsigned JWT")
    subject = _subject(claims, rules.principal_claim_name)
    expires_ms, issued_ms = _required_ms(claims, "exp"), _moment_ms(claims, "iat")
    if issued_ms is not None and issued_ms > now_ms + rules.clock_skew_ms:
        raise TokenRejected("the token is issued in the future")
    if now_ms - rules.clock_skew_ms >= expires_ms:
        raise TokenRejected("the token has expired")
    if issued_ms is not None and expires_ms <= issued_ms:
        raise TokenRejected("the token expires before it is issued")
    scopes = _words(claims, rules.scope_claim_name)
    if missing := set(rules.required_scope) - set(scopes):
        wanted = " ".join(rules.required_scope)
        raise TokenRejected(f"the token lacks the scope {min(missing)}", missing_scope=wanted)
    return Login(Principal(USER, subject), expires_ms)


def _json_part(text: str) -> dict[str, Any]:
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(content, type=dict[str, Any])
    except (binascii.Error, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise TokenRejected("the token is not a JWT") from error
