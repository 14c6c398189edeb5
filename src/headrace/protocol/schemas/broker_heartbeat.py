"""BrokerHeartbeat: API key 63.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message
from headrace.protocol.uuids import Uuid


class BrokerHeartbeatRequest(Message):
    API_KEY = 63
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = -1
    current_metadata_offset: Annotated[Int64, "0+"] = 0
    want_fence: Annotated[bool, "0+"] = False
    want_shut_down: Annotated[bool, "0+"] = False
    offline_log_dirs: Annotated[list[Uuid], "1+ tag=0"] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, "2+ tag=1"] = None


class BrokerHeartbeatResponse(Message):
    API_KEY = 63
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    is_caught_up: Annotated[bool, "0+"] = False
    is_fenced: Annotated[bool, "0+"] = True
    should_shut_down: Annotated[bool, "0+"] = False
