"""OffsetForLeaderEpoch: API key 23.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class OffsetForLeaderPartition(Structure):
    partition: Annotated[Int32, "0+"] = 0
    current_leader_epoch: Annotated[Int32, "2+ ignorable"] = -1
    leader_epoch: Annotated[Int32, "0+"] = 0


class OffsetForLeaderTopic(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[OffsetForLeaderPartition], "0+"] = []


class OffsetForLeaderEpochRequest(Message):
    API_KEY = 23
    VERSIONS = range(2, 5)
    FLEXIBLE_FROM = 4

    replica_id: Annotated[Int32, "3+ ignorable"] = -2
    topics: Annotated[list[OffsetForLeaderTopic], "0+"] = []


class EpochEndOffset(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    partition: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "1+ ignorable"] = -1
    end_offset: Annotated[Int64, "0+"] = -1


class OffsetForLeaderTopicResult(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[EpochEndOffset], "0+"] = []


class OffsetForLeaderEpochResponse(Message):
    API_KEY = 23
    VERSIONS = range(2, 5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: Annotated[Int32, "2+ ignorable"] = 0
    topics: Annotated[list[OffsetForLeaderTopicResult], "0+"] = []
