"""DescribeAcls v1-3: the access control rules that match a filter."""

from headrace.broker.api.registry import Call, api
from headrace.controller import acl_requests
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@api(ApiKey.DESCRIBE_ACLS, versions=range(1, 4))
def describe_acls(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:
    return acl_requests.describe_acls(call.broker.image, request, call.access)
