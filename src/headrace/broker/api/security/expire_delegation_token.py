"""ExpireDelegationToken v1-2: set the end of a token, or remove it (KIP-48)."""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.security.token_channels import check_channel
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@api(ApiKey.EXPIRE_DELEGATION_TOKEN, versions=range(1, 3), rights=())
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, call: Call
) -> ExpireDelegationTokenResponse:
    check_channel(call)
    response: ExpireDelegationTokenResponse = await call.ask_controller(request)
    return response
