"""LeaveGroup: API key 13.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class MemberIdentity(Structure):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None

    FIELDS = """
        member_id          string  3+
        group_instance_id  string  3+  nullable
        reason             string  5+  nullable ignorable
    """


class LeaveGroupRequest(Message):
    API_KEY = 13
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    group_id: str = ""
    member_id: str = ""
    members: list[MemberIdentity] = []

    FIELDS = """
        group_id   string            0+
        member_id  string            0-2
        members    []MemberIdentity  3+
    """


class MemberResponse(Structure):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0

    FIELDS = """
        member_id          string  3+
        group_instance_id  string  3+  nullable
        error_code         int16   3+
    """


class LeaveGroupResponse(Message):
    API_KEY = 13
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = 0
    error_code: int = 0
    members: list[MemberResponse] = []

    FIELDS = """
        throttle_time_ms  int32             1+  ignorable
        error_code        int16             0+
        members           []MemberResponse  3+
    """
