"""CreateAcls v1-3: add access control rules; the controller checks the client's right."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_acls import CreateAclsRequest, CreateAclsResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.CREATE_ACLS, versions=range(1, 4), rights=_RIGHTS)
async def create_acls(request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
    response: CreateAclsResponse = await call.ask_controller(request)
    return response
