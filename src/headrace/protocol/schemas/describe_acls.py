"""DescribeAcls: API key 29.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DescribeAclsRequest(Message):
    API_KEY = 29
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS = """
        resource_type_filter  int8    0+
        resource_name_filter  string  0+  nullable
        pattern_type_filter   int8    1+
        principal_filter      string  0+  nullable
        host_filter           string  0+  nullable
        operation             int8    0+
        permission_type       int8    0+
    """


class AclDescription(Structure):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS = """
        principal        string  0+
        host             string  0+
        operation        int8    0+
        permission_type  int8    0+
    """


class DescribeAclsResource(Structure):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = []

    FIELDS = """
        resource_type  int8              0+
        resource_name  string            0+
        pattern_type   int8              1+
        acls           []AclDescription  0+
    """


class DescribeAclsResponse(Message):
    API_KEY = 29
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []

    FIELDS = """
        throttle_time_ms  int32                   0+
        error_code        int16                   0+
        error_message     string                  0+  nullable
        resources         []DescribeAclsResource  0+
    """
