"""DeleteShareGroupState: API key 86.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class PartitionData(Structure):
    partition: Annotated[Int32, "0+"] = 0


class DeleteStateData(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[PartitionData], "0+"] = []


class DeleteShareGroupStateRequest(Message):
    API_KEY = 86
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[DeleteStateData], "0+"] = []


class PartitionResult(Structure):
    partition: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None


class DeleteStateResult(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[PartitionResult], "0+"] = []


class DeleteShareGroupStateResponse(Message):
    API_KEY = 86
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    results: Annotated[list[DeleteStateResult], "0+"] = []
