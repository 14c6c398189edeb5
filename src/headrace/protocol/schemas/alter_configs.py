"""AlterConfigs: API key 33.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class AlterableConfig(Structure):
    name: Annotated[str, "0+"] = ""
    value: Annotated[str | None, "0+"] = ""


class AlterConfigsResource(Structure):
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    configs: Annotated[list[AlterableConfig], "0+"] = []


class AlterConfigsRequest(Message):
    API_KEY = 33
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    resources: Annotated[list[AlterConfigsResource], "0+"] = []
    validate_only: Annotated[bool, "0+"] = False


class AlterConfigsResourceResponse(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""


class AlterConfigsResponse(Message):
    API_KEY = 33
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], "0+"] = []
