"""DeleteGroups: API key 42.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class DeleteGroupsRequest(Message):
    API_KEY = 42
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    groups_names: Annotated[list[str], "0+"] = []


class DeletableGroupResult(Structure):
    group_id: Annotated[str, "0+"] = ""
    error_code: Annotated[Int16, "0+"] = 0


class DeleteGroupsResponse(Message):
    API_KEY = 42
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    results: Annotated[list[DeletableGroupResult], "0+"] = []
