"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken, from request to response.

A token has two ends: a maximal one, which never changes, and an earlier one, which a renewal moves.
"""

from msgspec.structs import replace

from headrace.controller.decision import Decision
from headrace.controller.requests import Context
from headrace.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenAuthorizationFailed,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    DelegationTokenRequestNotAllowed,
    InvalidPrincipalType,
    UnsupportedVersion,
)
from headrace.metadata.features import has_delegation_tokens
from headrace.metadata.image import MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from headrace.protocol.schemas.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from headrace.protocol.schemas.records.metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from headrace.protocol.schemas.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from headrace.protocol.uuids import random_uuid, to_text
from headrace.security.acls import Operation, ResourceType
from headrace.security.principals import USER, Principal
from headrace.security.tokens import (
    is_expired,
    is_renewable_by,
    may_have_tokens,
    token_secret,
    token_with_secret,
)
from headrace.settings.definitions import LONG_MAX

_REQUESTER_FROM = 3
"""The version of CreateDelegationToken with an owner who is not the requester."""


def create_delegation_token(
    image: MetadataImage, request: CreateDelegationTokenRequest, context: Context
) -> Decision[CreateDelegationTokenResponse]:
    requester = _requester(context)
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    is_own = str(owner) == str(requester)
    user = ResourceType.USER
    if not is_own and not context.access.allows(Operation.CREATE_TOKENS, user, str(owner)):
        raise DelegationTokenAuthorizationFailed(f"{requester} cannot create tokens of {owner}")
    if not owner.type or any(one.principal_type != USER for one in request.renewers):
        raise InvalidPrincipalType(f"a renewer has the type {USER}, and an owner has any type")
    secret_key = _secret_key(image, context)
    token = _new_token(request, context, owner, requester)
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_secret(secret_key, token.token_id),
    )
    if context.version >= _REQUESTER_FROM:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return Decision([VersionedRecord(token)], response)


def renew_delegation_token(
    image: MetadataImage, request: RenewDelegationTokenRequest, context: Context
) -> Decision[RenewDelegationTokenResponse]:
    token = _token(image, context, request.hmac)
    now_ms = context.wall_ms
    if is_expired(token, now_ms):
        raise DelegationTokenExpired("the token has expired")
    _check_is_renewable(token, context)
    period_ms = context.settings.delegation_token_expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    moved = _ending_at(token, now_ms + period_ms)
    return Decision(
        [VersionedRecord(moved)], RenewDelegationTokenResponse(0, moved.expiration_timestamp)
    )


def expire_delegation_token(
    image: MetadataImage, request: ExpireDelegationTokenRequest, context: Context
) -> Decision[ExpireDelegationTokenResponse]:
    """Move the end of a token; a negative period removes it now, even if it has expired."""
    token = _token(image, context, request.hmac)
    _check_is_renewable(token, context)
    now_ms = context.wall_ms
    if request.expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token.token_id)
        return Decision([VersionedRecord(removal)], ExpireDelegationTokenResponse(0, now_ms))
    if is_expired(token, now_ms):
        raise DelegationTokenExpired("the token has expired")
    moved = _ending_at(token, now_ms + request.expiry_time_period_ms)
    return Decision(
        [VersionedRecord(moved)], ExpireDelegationTokenResponse(0, moved.expiration_timestamp)
    )


def _requester(context: Context) -> Principal:
    """Return the client; raise if it may have no tokens."""
    requester = context.access.caller.principal
    if not may_have_tokens(requester):
        raise DelegationTokenRequestNotAllowed(
            "tokens are for clients that log in otherwise than by a token"
        )
    return requester


def _secret_key(image: MetadataImage, context: Context) -> str:
    """Return the secret of the cluster's tokens; raise if it has none."""
    secret_key = context.settings.delegation_token_secret_key
    if not secret_key:
        raise DelegationTokenAuthDisabled("delegation.token.secret.key is not set")
    if not has_delegation_tokens(image.metadata_version):
        raise UnsupportedVersion("the metadata.version of this cluster has no delegation tokens")
    return secret_key


def _new_token(
    request: CreateDelegationTokenRequest,
    context: Context,
    owner: Principal,
    requester: Principal,
) -> DelegationTokenRecord:
    settings, now_ms = context.settings, context.wall_ms
    lifetime_ms = settings.delegation_token_max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    token = DelegationTokenRecord(
        owner=str(owner),
        requester=str(requester),
        renewers=[f"{one.principal_type}:{one.principal_name}" for one in request.renewers],
        issue_timestamp=now_ms,
        max_timestamp=min(now_ms + lifetime_ms, LONG_MAX),
        token_id=to_text(random_uuid()),
    )
    return _ending_at(token, now_ms + settings.delegation_token_expiry_time_ms)


def _token(image: MetadataImage, context: Context, secret: bytes) -> DelegationTokenRecord:
    """Return the token that a request names by its HMAC."""
    _requester(context)
    secret_key = _secret_key(image, context)
    token = token_with_secret(image.delegation_tokens, secret_key, secret)
    if token is None:
        raise DelegationTokenNotFound("no token has this HMAC")
    return token


def _check_is_renewable(token: DelegationTokenRecord, context: Context) -> None:
    principal = context.access.caller.principal
    if not is_renewable_by(token, principal):
        raise DelegationTokenOwnerMismatch(f"{principal} is neither owner nor renewer of the token")


def _ending_at(token: DelegationTokenRecord, end_ms: int) -> DelegationTokenRecord:
    return replace(token, expiration_timestamp=min(end_ms, token.max_timestamp))
