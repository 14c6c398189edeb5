"""Delegation tokens (KIP-48): short-lived credentials that a client gets for another one.

The metadata has the id, the owner and the times of each token. Its secret is the HMAC of the id by
`delegation.token.secret.key`, which all nodes share, so that no node stores it. Clients log in with
it by SCRAM: the id is the name, and the secret in base64 is the password.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from headrace.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from headrace.protocol.schemas.records.metadata import DelegationTokenRecord

Tokens = Mapping[str, "DelegationTokenRecord"]
"""The tokens of a cluster by id."""

_PLAINTEXT, _SSL = "PLAINTEXT", "SSL"


def token_secret(secret_key: str, token_id: str) -> bytes:
    """Return the HMAC of a token."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_with_secret(
    tokens: Tokens, secret_key: str, secret: bytes
) -> "DelegationTokenRecord | None":
    """Find a token by its HMAC; it takes about a microsecond per token."""
    for token in tokens.values():
        if hmac.compare_digest(token_secret(secret_key, token.token_id), secret):
            return token
    return None


def is_expired(token: "DelegationTokenRecord", now_ms: int) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def is_renewable_by(token: "DelegationTokenRecord", principal: Principal) -> bool:
    """Return whether a principal may renew and expire a token: its owner and its renewers may."""
    return str(principal) in (token.owner, *token.renewers)


def is_of(token: "DelegationTokenRecord", principal: Principal) -> bool:
    """Return whether a principal may always see a token."""
    return str(principal) in (token.owner, token.requester, *token.renewers)


def principal_in(text: str) -> Principal:
    """Return the principal in a record; Kafka's names may be empty."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)


def may_have_tokens(principal: Principal) -> bool:
    """Return whether a principal may create, see and change tokens.

    A client that used a token itself must not extend its own life, nor create others.
    """
    return not principal.is_token_authenticated and not is_anonymous(principal)


def may_carry_tokens(protocol: str, principal: Principal) -> bool:
    """Return whether requests for tokens are allowed on a listener of a security protocol."""
    if principal.is_token_authenticated or protocol == _PLAINTEXT:
        return False
    return protocol != _SSL or not is_anonymous(principal)


def is_anonymous(principal: Principal) -> bool:
    return str(principal) == str(ANONYMOUS)


def visible(
    tokens: Iterable["DelegationTokenRecord"],
    principal: Principal,
    owners: Iterable[Principal] | None,
    may_describe: Callable[["DelegationTokenRecord"], bool],
) -> Iterator["DelegationTokenRecord"]:
    """Return the tokens of some owners, or of all, that a principal may see."""
    wanted = None if owners is None else list(owners)
    for token in tokens:
        is_wanted = wanted is None or any(is_of(token, owner) for owner in wanted)
        if is_wanted and (is_of(token, principal) or may_describe(token)):
            yield token
