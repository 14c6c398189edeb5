"""ListConfigResources: API key 74.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ListConfigResourcesRequest(Message):
    API_KEY = 74
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    resource_types: list[int] = []

    FIELDS = """
        resource_types  []int8  1+
    """


class ConfigResource(Structure):
    resource_name: str = ""
    resource_type: int = 16

    FIELDS = """
        resource_name  string  0+
        resource_type  int8    1+  ignorable
    """


class ListConfigResourcesResponse(Message):
    API_KEY = 74
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = []

    FIELDS = """
        throttle_time_ms  int32             0+
        error_code        int16             0+
        config_resources  []ConfigResource  0+
    """
