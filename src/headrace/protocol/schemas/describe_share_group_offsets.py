"""DescribeShareGroupOffsets: API key 90.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DescribeShareGroupOffsetsRequestTopic(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class DescribeShareGroupOffsetsRequestGroup(Structure):
    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[DescribeShareGroupOffsetsRequestTopic] | None, "0+"] = []


class DescribeShareGroupOffsetsRequest(Message):
    API_KEY = 90
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    groups: Annotated[list[DescribeShareGroupOffsetsRequestGroup], "0+"] = []


class DescribeShareGroupOffsetsResponsePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    start_offset: Annotated[Int64, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    lag: Annotated[Int64, "1+ ignorable"] = -1
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None


class DescribeShareGroupOffsetsResponseTopic(Structure):
    topic_name: Annotated[str, "0+"] = ""
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[DescribeShareGroupOffsetsResponsePartition], "0+"] = []


class DescribeShareGroupOffsetsResponseGroup(Structure):
    group_id: Annotated[str, "0+"] = ""
    topics: Annotated[list[DescribeShareGroupOffsetsResponseTopic], "0+"] = []
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None


class DescribeShareGroupOffsetsResponse(Message):
    API_KEY = 90
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    groups: Annotated[list[DescribeShareGroupOffsetsResponseGroup], "0+"] = []
