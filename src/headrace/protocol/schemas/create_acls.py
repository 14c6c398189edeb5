"""CreateAcls: API key 30.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class AclCreation(Structure):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0

    FIELDS = """
        resource_type          int8    0+
        resource_name          string  0+
        resource_pattern_type  int8    1+
        principal              string  0+
        host                   string  0+
        operation              int8    0+
        permission_type        int8    0+
    """


class CreateAclsRequest(Message):
    API_KEY = 30
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    creations: list[AclCreation] = []

    FIELDS = """
        creations  []AclCreation  0+
    """


class AclCreationResult(Structure):
    error_code: int = 0
    error_message: str | None = ""

    FIELDS = """
        error_code     int16   0+
        error_message  string  0+  nullable
    """


class CreateAclsResponse(Message):
    API_KEY = 30
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    results: list[AclCreationResult] = []

    FIELDS = """
        throttle_time_ms  int32                0+
        results           []AclCreationResult  0+
    """
