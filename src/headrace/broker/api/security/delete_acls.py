"""DeleteAcls v1-3: remove the access control rules that match filters."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_acls import DeleteAclsRequest, DeleteAclsResponse


@api(ApiKey.DELETE_ACLS, versions=range(1, 4))
async def delete_acls(request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
    response: DeleteAclsResponse = await call.ask_controller(request)
    return response
