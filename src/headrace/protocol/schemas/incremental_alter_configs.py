"""IncrementalAlterConfigs: API key 44.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class AlterableConfig(Structure):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""

    FIELDS = """
        name              string  0+
        config_operation  int8    0+
        value             string  0+  nullable
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


class IncrementalAlterConfigsRequest(Message):
    API_KEY = 44
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

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


class IncrementalAlterConfigsResponse(Message):
    API_KEY = 44
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = []

    FIELDS = """
        throttle_time_ms  int32                           0+
        responses         []AlterConfigsResourceResponse  0+
    """
