"""DescribeAcls v1-3: the access control rules that match a filter."""

from headrace.broker.api.registry import Call, api
from headrace.controller import acl_requests
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.DESCRIBE, ResourceType.CLUSTER),)


@api(ApiKey.DESCRIBE_ACLS, versions=range(1, 4), rights=_RIGHTS)
def describe_acls(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:
    return acl_requests.describe_acls(call.broker.image, request, call.access)
