"""OffsetFetch: API key 9.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class OffsetFetchRequestTopic(Structure):
    name: Annotated[str, "0-7"] = ""
    partition_indexes: Annotated[list[Int32], "0-7"] = []


class OffsetFetchRequestTopics(Structure):
    name: Annotated[str, "8-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO
    partition_indexes: Annotated[list[Int32], "8+"] = []


class OffsetFetchRequestGroup(Structure):
    group_id: Annotated[str, "8+"] = ""
    member_id: Annotated[str | None, "9+ ignorable"] = None
    member_epoch: Annotated[Int32, "9+ ignorable"] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, "8+"] = []


class OffsetFetchRequest(Message):
    API_KEY = 9
    VERSIONS = range(1, 11)
    FLEXIBLE_FROM = 6

    group_id: Annotated[str, "0-7"] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, "0-7 nullable=2-7"] = []
    groups: Annotated[list[OffsetFetchRequestGroup], "8+"] = []
    require_stable: Annotated[bool, "7+"] = False


class OffsetFetchResponsePartition(Structure):
    partition_index: Annotated[Int32, "0-7"] = 0
    committed_offset: Annotated[Int64, "0-7"] = 0
    committed_leader_epoch: Annotated[Int32, "5-7 ignorable"] = -1
    metadata: Annotated[str | None, "0-7"] = ""
    error_code: Annotated[Int16, "0-7"] = 0


class OffsetFetchResponseTopic(Structure):
    name: Annotated[str, "0-7"] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], "0-7"] = []


class OffsetFetchResponsePartitions(Structure):
    partition_index: Annotated[Int32, "8+"] = 0
    committed_offset: Annotated[Int64, "8+"] = 0
    committed_leader_epoch: Annotated[Int32, "8+ ignorable"] = -1
    metadata: Annotated[str | None, "8+"] = ""
    error_code: Annotated[Int16, "8+"] = 0


class OffsetFetchResponseTopics(Structure):
    name: Annotated[str, "8-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO
    partitions: Annotated[list[OffsetFetchResponsePartitions], "8+"] = []


class OffsetFetchResponseGroup(Structure):
    group_id: Annotated[str, "8+"] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], "8+"] = []
    error_code: Annotated[Int16, "8+"] = 0


class OffsetFetchResponse(Message):
    API_KEY = 9
    VERSIONS = range(1, 11)
    FLEXIBLE_FROM = 6

    throttle_time_ms: Annotated[Int32, "3+ ignorable"] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], "0-7"] = []
    error_code: Annotated[Int16, "2-7 ignorable"] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], "8+"] = []
