"""CreateAcls v1-3: add access control rules; the controller checks the client's right."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_acls import CreateAclsRequest, CreateAclsResponse


@api(ApiKey.CREATE_ACLS, versions=range(1, 4))
async def create_acls(request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
    response: CreateAclsResponse = await call.ask_controller(request)
    return response
