"""Heartbeat: API key 12.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message


class HeartbeatRequest(Message):
    API_KEY = 12
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    group_id: Annotated[str, "0+"] = ""
    generation_id: Annotated[Int32, "0+"] = 0
    member_id: Annotated[str, "0+"] = ""
    group_instance_id: Annotated[str | None, "3+"] = None


class HeartbeatResponse(Message):
    API_KEY = 12
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
