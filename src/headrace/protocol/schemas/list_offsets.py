"""ListOffsets: API key 2.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure


class ListOffsetsPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    current_leader_epoch: Annotated[Int32, "4+ ignorable"] = -1
    timestamp: Annotated[Int64, "0+"] = 0


class ListOffsetsTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[ListOffsetsPartition], "0+"] = []


class ListOffsetsRequest(Message):
    API_KEY = 2
    VERSIONS = range(1, 12)
    FLEXIBLE_FROM = 6

    replica_id: Annotated[Int32, "0+"] = 0
    isolation_level: Annotated[Int8, "2+"] = 0
    topics: Annotated[list[ListOffsetsTopic], "0+"] = []
    timeout_ms: Annotated[Int32, "10+ ignorable"] = 0


class ListOffsetsPartitionResponse(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    timestamp: Annotated[Int64, "1+"] = -1
    offset: Annotated[Int64, "1+"] = -1
    leader_epoch: Annotated[Int32, "4+"] = -1


class ListOffsetsTopicResponse(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[ListOffsetsPartitionResponse], "0+"] = []


class ListOffsetsResponse(Message):
    API_KEY = 2
    VERSIONS = range(1, 12)
    FLEXIBLE_FROM = 6

    throttle_time_ms: Annotated[Int32, "2+ ignorable"] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], "0+"] = []
