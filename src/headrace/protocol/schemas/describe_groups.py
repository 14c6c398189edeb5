"""DescribeGroups: API key 15.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class DescribeGroupsRequest(Message):
    API_KEY = 15
    VERSIONS = range(7)
    FLEXIBLE_FROM = 5

    groups: Annotated[list[str], "0+"] = []
    include_authorized_operations: Annotated[bool, "3+"] = False


class DescribedGroupMember(Structure):
    member_id: Annotated[str, "0+"] = ""
    group_instance_id: Annotated[str | None, "4+ ignorable"] = None
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    member_metadata: Annotated[bytes, "0+"] = b""
    member_assignment: Annotated[bytes, "0+"] = b""


class DescribedGroup(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "6+"] = None
    group_id: Annotated[str, "0+"] = ""
    group_state: Annotated[str, "0+"] = ""
    protocol_type: Annotated[str, "0+"] = ""
    protocol_data: Annotated[str, "0+"] = ""
    members: Annotated[list[DescribedGroupMember], "0+"] = []
    authorized_operations: Annotated[Int32, "3+"] = -2147483648


class DescribeGroupsResponse(Message):
    API_KEY = 15
    VERSIONS = range(7)
    FLEXIBLE_FROM = 5

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    groups: Annotated[list[DescribedGroup], "0+"] = []
