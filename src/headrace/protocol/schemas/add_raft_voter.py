"""AddRaftVoter: API key 80.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class Listener(Structure):
    name: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class AddRaftVoterRequest(Message):
    API_KEY = 80
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    cluster_id: Annotated[str | None, "0+"] = ""
    timeout_ms: Annotated[Int32, "0+"] = 0
    voter_id: Annotated[Int32, "0+"] = 0
    voter_directory_id: Annotated[Uuid, "0+"] = ZERO
    listeners: Annotated[list[Listener], "0+"] = []
    ack_when_committed: Annotated[bool, "1+"] = True


class AddRaftVoterResponse(Message):
    API_KEY = 80
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+ ignorable"] = ""
