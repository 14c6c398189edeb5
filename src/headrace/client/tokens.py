"""Delegation tokens over the wire: create, list, renew and expire them.

The secret of a token is its HMAC in base64. A client logs in with it by SCRAM, with the id as the
name, the secret as the password and the extension `tokenauth=true`.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence

import msgspec

from headrace.client.cluster import Cluster, check_code
from headrace.errors import HeadraceError
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from headrace.protocol.schemas.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from headrace.protocol.schemas.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from headrace.protocol.schemas.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from headrace.security.principals import Principal

_REQUESTER_FROM = 3
_DEFAULT_MS = -1
_AT_ONCE_MS = -1


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A delegation token; principals are texts such as `User:ada`."""

    id: str
    secret: str
    owner: str
    requester: str | None = None
    """The principal that created it; None from brokers before Kafka 3.3."""
    renewers: list[str] = []
    issued_at_ms: int
    expires_at_ms: int
    max_ends_at_ms: int
    """The time after which it cannot be renewed."""

    def __repr__(self) -> str:
        return f"Token({self.id}, {self.owner})"


class Tokens:
    """The delegation tokens of a cluster; they need a connection with a login."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def create(
        self,
        *,
        owner: Principal | None = None,
        renewers: Sequence[Principal] = (),
        max_lifetime_ms: int = _DEFAULT_MS,
    ) -> Token:
        """Create a token for this client, or for another owner; -1 is the cluster's lifetime."""
        request = CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(one.type, one.name) for one in renewers],
            max_lifetime_ms=max_lifetime_ms,
        )
        if owner is not None:
            request.owner_principal_type, request.owner_principal_name = owner.type, owner.name
        elif self._version_of(request) >= _REQUESTER_FROM:
            request.owner_principal_type = request.owner_principal_name = None
        answer = self._cluster.ask_controller(request, CreateDelegationTokenResponse)
        check_code(answer.error_code)
        return Token(
            id=answer.token_id,
            secret=base64.b64encode(answer.hmac).decode(),
            owner=f"{answer.principal_type}:{answer.principal_name}",
            requester=_text(
                answer.token_requester_principal_type, answer.token_requester_principal_name
            ),
            renewers=[str(one) for one in renewers],
            issued_at_ms=answer.issue_timestamp_ms,
            expires_at_ms=answer.expiry_timestamp_ms,
            max_ends_at_ms=answer.max_timestamp_ms,
        )

    def describe(self, owners: Iterable[Principal] | None = None) -> list[Token]:
        """Return the visible tokens of some owners, or of all; the oldest first."""
        request = DescribeDelegationTokenRequest(owners=None)
        if owners is not None:
            request.owners = [DescribeDelegationTokenOwner(one.type, one.name) for one in owners]
        answer = self._cluster.query(request, DescribeDelegationTokenResponse)
        return sorted(map(_token, answer.tokens), key=lambda one: (one.issued_at_ms, one.id))

    def renew(self, secret: str, period_ms: int = _DEFAULT_MS) -> int:
        """Move the end of a token, and return it; -1 is the cluster's period."""
        request = RenewDelegationTokenRequest(_hmac(secret), period_ms)
        answer = self._cluster.ask_controller(request, RenewDelegationTokenResponse)
        check_code(answer.error_code)
        return answer.expiry_timestamp_ms

    def expire(self, secret: str, period_ms: int = _AT_ONCE_MS) -> int:
        """Set the end of a token, and return it; -1 removes the token."""
        request = ExpireDelegationTokenRequest(_hmac(secret), period_ms)
        answer = self._cluster.ask_controller(request, ExpireDelegationTokenResponse)
        check_code(answer.error_code)
        return answer.expiry_timestamp_ms

    def _version_of(self, request: Message) -> int:
        return self._cluster.connection().version_of(request)


def _token(found: DescribedDelegationToken) -> Token:
    return Token(
        id=found.token_id,
        secret=base64.b64encode(found.hmac).decode(),
        owner=f"{found.principal_type}:{found.principal_name}",
        requester=_text(found.token_requester_principal_type, found.token_requester_principal_name),
        renewers=[f"{one.principal_type}:{one.principal_name}" for one in found.renewers],
        issued_at_ms=found.issue_timestamp,
        expires_at_ms=found.expiry_timestamp,
        max_ends_at_ms=found.max_timestamp,
    )


def _text(kind: str, name: str) -> str | None:
    return f"{kind}:{name}" if kind else None


def _hmac(secret: str) -> bytes:
    try:
        return base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        raise HeadraceError("the secret of a token must be its HMAC in base64") from None
