"""AlterShareGroupOffsets: API key 91.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class AlterShareGroupOffsetsRequestPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    start_offset: Annotated[Int64, "0+"] = 0


class AlterShareGroupOffsetsRequestTopic(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[AlterShareGroupOffsetsRequestPartition], "0+"] = []


class AlterShareGroupOffsetsRequest(Message):
    API_KEY = 91
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[AlterShareGroupOffsetsRequestTopic], "0+"] = []


class AlterShareGroupOffsetsResponsePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None


class AlterShareGroupOffsetsResponseTopic(Structure):
    topic_name: Annotated[str, "0+"] = ""
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[AlterShareGroupOffsetsResponsePartition], "0+"] = []


class AlterShareGroupOffsetsResponse(Message):
    API_KEY = 91
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    responses: Annotated[list[AlterShareGroupOffsetsResponseTopic], "0+"] = []
