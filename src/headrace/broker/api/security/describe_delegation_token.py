"""DescribeDelegationToken v1-3: list tokens with their secrets (KIP-48).

Owners, requesters and renewers see their tokens. Others need a right to the token or to its owner.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.security.token_channels import check_channel
from headrace.errors import DelegationTokenAuthDisabled
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from headrace.protocol.schemas.records.metadata import DelegationTokenRecord
from headrace.security.acls import Operation, ResourceType
from headrace.security.principals import Principal
from headrace.security.rights import Alternative, to_list
from headrace.security.tokens import principal_in, token_secret, visible

_REQUESTER_FROM = 3
_RIGHTS = (
    to_list(
        Operation.DESCRIBE,
        ResourceType.DELEGATION_TOKEN,
        "tokens of others",
        instead=(Alternative(Operation.DESCRIBE_TOKENS, ResourceType.USER),),
    ),
)


@api(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=range(1, 4), rights=_RIGHTS)
def describe_delegation_token(
    request: DescribeDelegationTokenRequest, call: Call
) -> DescribeDelegationTokenResponse:
    check_channel(call)
    secret_key = call.broker.settings.delegation_token_secret_key
    if not secret_key:
        raise DelegationTokenAuthDisabled("delegation.token.secret.key is not set")
    owners = None
    if request.owners is not None:
        owners = [Principal(one.principal_type, one.principal_name) for one in request.owners]
    found = visible(
        call.broker.image.delegation_tokens.values(),
        call.peer.principal,
        owners,
        lambda token: _may_describe(token, call),
    )
    tokens = [_described(one, secret_key, call.version) for one in found]
    return DescribeDelegationTokenResponse(tokens=tokens)


def _may_describe(token: DelegationTokenRecord, call: Call) -> bool:
    access = call.access
    return access.allows(
        Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
    ) or access.allows(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)


def _described(
    token: DelegationTokenRecord, secret_key: str, version: int
) -> DescribedDelegationToken:
    owner, requester = principal_in(token.owner), principal_in(token.requester)
    described = DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_secret(secret_key, token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(one.type, one.name)
            for one in map(principal_in, token.renewers)
        ],
    )
    if version >= _REQUESTER_FROM:
        described.token_requester_principal_type = requester.type
        described.token_requester_principal_name = requester.name
    return described
