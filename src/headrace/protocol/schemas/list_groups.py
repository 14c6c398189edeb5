"""ListGroups: API key 16.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class ListGroupsRequest(Message):
    API_KEY = 16
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    states_filter: Annotated[list[str], "4+"] = []
    types_filter: Annotated[list[str], "5+"] = []


class ListedGroup(Structure):
    group_id: Annotated[str, "0+"] = ""
    protocol_type: Annotated[str, "0+"] = ""
    group_state: Annotated[str, "4+ ignorable"] = ""
    group_type: Annotated[str, "5+ ignorable"] = ""


class ListGroupsResponse(Message):
    API_KEY = 16
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    groups: Annotated[list[ListedGroup], "0+"] = []
