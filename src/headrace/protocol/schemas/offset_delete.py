"""OffsetDelete: API key 47.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class OffsetDeleteRequestPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0


class OffsetDeleteRequestTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[OffsetDeleteRequestPartition], "0+"] = []


class OffsetDeleteRequest(Message):
    API_KEY = 47
    VERSIONS = range(1)

    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[OffsetDeleteRequestTopic], "0+"] = []


class OffsetDeleteResponsePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0


class OffsetDeleteResponseTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[OffsetDeleteResponsePartition], "0+"] = []


class OffsetDeleteResponse(Message):
    API_KEY = 47
    VERSIONS = range(1)

    error_code: Annotated[Int16, "0+"] = 0
    throttle_time_ms: Annotated[Int32, "0+ ignorable"] = 0
    topics: Annotated[list[OffsetDeleteResponseTopic], "0+"] = []
