"""Heartbeat: API key 12.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class HeartbeatRequest(Message):
    API_KEY = 12
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None

    FIELDS = """
        group_id           string  0+
        generation_id      int32   0+
        member_id          string  0+
        group_instance_id  string  3+  nullable
    """


class HeartbeatResponse(Message):
    API_KEY = 12
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = 0
    error_code: int = 0

    FIELDS = """
        throttle_time_ms  int32  1+  ignorable
        error_code        int16  0+
    """
