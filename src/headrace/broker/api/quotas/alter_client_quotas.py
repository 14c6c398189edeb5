"""AlterClientQuotas v0-1: set and remove quotas of users, client ids and addresses (KIP-546)."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)


@api(ApiKey.ALTER_CLIENT_QUOTAS, versions=range(2))
async def alter_client_quotas(
    request: AlterClientQuotasRequest, call: Call
) -> AlterClientQuotasResponse:
    response: AlterClientQuotasResponse = await call.ask_controller(request)
    return response
