"""RemoveRaftVoter: API key 81.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message
from headrace.protocol.uuids import ZERO, Uuid


class RemoveRaftVoterRequest(Message):
    API_KEY = 81
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    cluster_id: Annotated[str | None, "0+"] = ""
    voter_id: Annotated[Int32, "0+"] = 0
    voter_directory_id: Annotated[Uuid, "0+"] = ZERO


class RemoveRaftVoterResponse(Message):
    API_KEY = 81
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+ ignorable"] = ""
