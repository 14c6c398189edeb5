"""AlterConfigs: API key 33.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class AlterableConfig(Structure):
    name: str = ""
    value: str | None = ""

    FIELDS = """
        name   string  0+
        value  string  0+  nullable
    """


class AlterConfigsResource(Structure):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []

    FIELDS = """
        resource_type  int8               0+
        resource_name  string             0+
        configs        []AlterableConfig  0+
    """


class AlterConfigsRequest(Message):
    API_KEY = 33
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False

    FIELDS = """
        resources      []AlterConfigsResource  0+
        validate_only  bool                    0+
    """


class AlterConfigsResourceResponse(Structure):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""

    FIELDS = """
        error_code     int16   0+
        error_message  string  0+  nullable
        resource_type  int8    0+
        resource_name  string  0+
    """


class AlterConfigsResponse(Message):
    API_KEY = 33
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = []

    FIELDS = """
        throttle_time_ms  int32                           0+
        responses         []AlterConfigsResourceResponse  0+
    """
