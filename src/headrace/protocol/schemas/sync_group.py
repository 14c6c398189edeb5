"""SyncGroup: API key 14.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class SyncGroupRequestAssignment(Structure):
    member_id: Annotated[str, "0+"] = ""
    assignment: Annotated[bytes, "0+"] = b""


class SyncGroupRequest(Message):
    API_KEY = 14
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    group_id: Annotated[str, "0+"] = ""
    generation_id: Annotated[Int32, "0+"] = 0
    member_id: Annotated[str, "0+"] = ""
    group_instance_id: Annotated[str | None, "3+"] = None
    protocol_type: Annotated[str | None, "5+ ignorable"] = None
    protocol_name: Annotated[str | None, "5+ ignorable"] = None
    assignments: Annotated[list[SyncGroupRequestAssignment], "0+"] = []


class SyncGroupResponse(Message):
    API_KEY = 14
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    protocol_type: Annotated[str | None, "5+ ignorable"] = None
    protocol_name: Annotated[str | None, "5+ ignorable"] = None
    assignment: Annotated[bytes, "0+"] = b""
