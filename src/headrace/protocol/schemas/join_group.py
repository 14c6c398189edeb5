"""JoinGroup: API key 11.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class JoinGroupRequestProtocol(Structure):
    name: Annotated[str, "0+"] = ""
    metadata: Annotated[bytes, "0+"] = b""


class JoinGroupRequest(Message):
    API_KEY = 11
    VERSIONS = range(10)
    FLEXIBLE_FROM = 6

    group_id: Annotated[str, "0+"] = ""
    session_timeout_ms: Annotated[Int32, "0+"] = 0
    rebalance_timeout_ms: Annotated[Int32, "1+ ignorable"] = -1
    member_id: Annotated[str, "0+"] = ""
    group_instance_id: Annotated[str | None, "5+"] = None
    protocol_type: Annotated[str, "0+"] = ""
    protocols: Annotated[list[JoinGroupRequestProtocol], "0+"] = []
    reason: Annotated[str | None, "8+ ignorable"] = None


class JoinGroupResponseMember(Structure):
    member_id: Annotated[str, "0+"] = ""
    group_instance_id: Annotated[str | None, "5+ ignorable"] = None
    metadata: Annotated[bytes, "0+"] = b""


class JoinGroupResponse(Message):
    API_KEY = 11
    VERSIONS = range(10)
    FLEXIBLE_FROM = 6

    throttle_time_ms: Annotated[Int32, "2+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    generation_id: Annotated[Int32, "0+"] = -1
    protocol_type: Annotated[str | None, "7+ ignorable"] = None
    protocol_name: Annotated[str | None, "0+ nullable=7+"] = ""
    leader: Annotated[str, "0+"] = ""
    skip_assignment: Annotated[bool, "9+"] = False
    member_id: Annotated[str, "0+"] = ""
    members: Annotated[list[JoinGroupResponseMember], "0+"] = []
