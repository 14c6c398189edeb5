"""DescribeAcls: API key 29.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class DescribeAclsRequest(Message):
    API_KEY = 29
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    resource_type_filter: Annotated[Int8, "0+"] = 0
    resource_name_filter: Annotated[str | None, "0+"] = ""
    pattern_type_filter: Annotated[Int8, "1+"] = 3
    principal_filter: Annotated[str | None, "0+"] = ""
    host_filter: Annotated[str | None, "0+"] = ""
    operation: Annotated[Int8, "0+"] = 0
    permission_type: Annotated[Int8, "0+"] = 0


class AclDescription(Structure):
    principal: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    operation: Annotated[Int8, "0+"] = 0
    permission_type: Annotated[Int8, "0+"] = 0


class DescribeAclsResource(Structure):
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    pattern_type: Annotated[Int8, "1+"] = 3
    acls: Annotated[list[AclDescription], "0+"] = []


class DescribeAclsResponse(Message):
    API_KEY = 29
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    resources: Annotated[list[DescribeAclsResource], "0+"] = []
