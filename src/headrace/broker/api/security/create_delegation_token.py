"""CreateDelegationToken v1-3: create a token for the client (KIP-48).

From v3 on it may be a token for another owner (KIP-373).
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.security.token_channels import check_channel
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Lacking, Right

_RIGHTS = (
    Right(
        Operation.CREATE_TOKENS,
        ResourceType.USER,
        Lacking.REFUSES_REQUEST,
        "tokens for others",
        answer="`DELEGATION_TOKEN_AUTHORIZATION_FAILED` for the request",
    ),
)


@api(ApiKey.CREATE_DELEGATION_TOKEN, versions=range(1, 4), rights=_RIGHTS)
async def create_delegation_token(
    request: CreateDelegationTokenRequest, call: Call
) -> CreateDelegationTokenResponse:
    check_channel(call)
    response: CreateDelegationTokenResponse = await call.ask_controller(request)
    return response
