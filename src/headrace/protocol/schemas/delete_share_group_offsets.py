"""DeleteShareGroupOffsets: API key 92.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DeleteShareGroupOffsetsRequestTopic(Structure):
    topic_name: Annotated[str, "0+"] = ""


class DeleteShareGroupOffsetsRequest(Message):
    API_KEY = 92
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[DeleteShareGroupOffsetsRequestTopic], "0+"] = []


class DeleteShareGroupOffsetsResponseTopic(Structure):
    topic_name: Annotated[str, "0+"] = ""
    topic_id: Annotated[Uuid, "0+"] = ZERO
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None


class DeleteShareGroupOffsetsResponse(Message):
    API_KEY = 92
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    responses: Annotated[list[DeleteShareGroupOffsetsResponseTopic], "0+"] = []
