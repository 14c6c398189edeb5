"""SyncGroup: API key 14.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class SyncGroupRequestAssignment(Structure):
    member_id: str = ""
    assignment: bytes = b""

    FIELDS = """
        member_id   string  0+
        assignment  bytes   0+
    """


class SyncGroupRequest(Message):
    API_KEY = 14
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[SyncGroupRequestAssignment] = []

    FIELDS = """
        group_id           string                        0+
        generation_id      int32                         0+
        member_id          string                        0+
        group_instance_id  string                        3+  nullable
        protocol_type      string                        5+  nullable ignorable
        protocol_name      string                        5+  nullable ignorable
        assignments        []SyncGroupRequestAssignment  0+
    """


class SyncGroupResponse(Message):
    API_KEY = 14
    VERSIONS = range(6)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""

    FIELDS = """
        throttle_time_ms  int32   1+  ignorable
        error_code        int16   0+
        protocol_type     string  5+  nullable ignorable
        protocol_name     string  5+  nullable ignorable
        assignment        bytes   0+
    """
