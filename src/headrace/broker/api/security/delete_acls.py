"""DeleteAcls v1-3: remove the access control rules that match filters."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.DELETE_ACLS, versions=range(1, 4), rights=_RIGHTS)
async def delete_acls(request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
    response: DeleteAclsResponse = await call.ask_controller(request)
    return response
