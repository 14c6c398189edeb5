"""CreateAcls: API key 30.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class AclCreation(Structure):
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    resource_pattern_type: Annotated[Int8, "1+"] = 3
    principal: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    operation: Annotated[Int8, "0+"] = 0
    permission_type: Annotated[Int8, "0+"] = 0


class CreateAclsRequest(Message):
    API_KEY = 30
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    creations: Annotated[list[AclCreation], "0+"] = []


class AclCreationResult(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""


class CreateAclsResponse(Message):
    API_KEY = 30
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    results: Annotated[list[AclCreationResult], "0+"] = []
