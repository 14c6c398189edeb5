"""LeaveGroup: API key 13.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class MemberIdentity(Structure):
    member_id: Annotated[str, "3+"] = ""
    group_instance_id: Annotated[str | None, "3+"] = None
    reason: Annotated[str | None, "5+ ignorable"] = None


class LeaveGroupRequest(Message):
    API_KEY = 13
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    group_id: Annotated[str, "0+"] = ""
    member_id: Annotated[str, "0-2"] = ""
    members: Annotated[list[MemberIdentity], "3+"] = []


class MemberResponse(Structure):
    member_id: Annotated[str, "3+"] = ""
    group_instance_id: Annotated[str | None, "3+"] = ""
    error_code: Annotated[Int16, "3+"] = 0


class LeaveGroupResponse(Message):
    API_KEY = 13
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    members: Annotated[list[MemberResponse], "3+"] = []
