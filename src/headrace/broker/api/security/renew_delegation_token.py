"""RenewDelegationToken v1-2: move the end of a token, up to its longest lifetime (KIP-48)."""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.security.token_channels import check_channel
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@api(ApiKey.RENEW_DELEGATION_TOKEN, versions=range(1, 3), rights=())
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, call: Call
) -> RenewDelegationTokenResponse:
    check_channel(call)
    response: RenewDelegationTokenResponse = await call.ask_controller(request)
    return response
