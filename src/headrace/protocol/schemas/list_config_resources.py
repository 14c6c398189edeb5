"""ListConfigResources: API key 74.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class ListConfigResourcesRequest(Message):
    API_KEY = 74
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    resource_types: Annotated[list[Int8], "1+"] = []


class ConfigResource(Structure):
    resource_name: Annotated[str, "0+"] = ""
    resource_type: Annotated[Int8, "1+ ignorable"] = 16


class ListConfigResourcesResponse(Message):
    API_KEY = 74
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    config_resources: Annotated[list[ConfigResource], "0+"] = []
