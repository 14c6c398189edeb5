"""ReadShareGroupState: API key 84.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class PartitionData(Structure):
    partition: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class ReadStateData(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[PartitionData], "0+"] = []


class ReadShareGroupStateRequest(Message):
    API_KEY = 84
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[ReadStateData], "0+"] = []


class StateBatch(Structure):
    first_offset: Annotated[Int64, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    delivery_state: Annotated[Int8, "0+"] = 0
    delivery_count: Annotated[Int16, "0+"] = 0


class PartitionResult(Structure):
    partition: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    state_epoch: Annotated[Int32, "0+"] = 0
    start_offset: Annotated[Int64, "0+"] = 0
    state_batches: Annotated[list[StateBatch], "0+"] = []


class ReadStateResult(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[PartitionResult], "0+"] = []


class ReadShareGroupStateResponse(Message):
    API_KEY = 84
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    results: Annotated[list[ReadStateResult], "0+"] = []
