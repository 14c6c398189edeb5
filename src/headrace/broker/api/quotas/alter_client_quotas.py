"""AlterClientQuotas v0-1: set and remove quotas of users, client ids and addresses (KIP-546)."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),)


@api(ApiKey.ALTER_CLIENT_QUOTAS, versions=range(2), rights=_RIGHTS)
async def alter_client_quotas(
    request: AlterClientQuotasRequest, call: Call
) -> AlterClientQuotasResponse:
    response: AlterClientQuotasResponse = await call.ask_controller(request)
    return response
