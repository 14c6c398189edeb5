"""OffsetCommit: API key 8.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class OffsetCommitRequestPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    committed_offset: Annotated[Int64, "0+"] = 0
    committed_leader_epoch: Annotated[Int32, "6+ ignorable"] = -1
    committed_metadata: Annotated[str | None, "0+"] = ""


class OffsetCommitRequestTopic(Structure):
    name: Annotated[str, "0-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO
    partitions: Annotated[list[OffsetCommitRequestPartition], "0+"] = []


class OffsetCommitRequest(Message):
    API_KEY = 8
    VERSIONS = range(2, 11)
    FLEXIBLE_FROM = 8

    group_id: Annotated[str, "0+"] = ""
    generation_id_or_member_epoch: Annotated[Int32, "1+ ignorable"] = -1
    member_id: Annotated[str, "1+ ignorable"] = ""
    group_instance_id: Annotated[str | None, "7+"] = None
    retention_time_ms: Annotated[Int64, "2-4 ignorable"] = -1
    topics: Annotated[list[OffsetCommitRequestTopic], "0+"] = []


class OffsetCommitResponsePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0


class OffsetCommitResponseTopic(Structure):
    name: Annotated[str, "0-9 ignorable"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO
    partitions: Annotated[list[OffsetCommitResponsePartition], "0+"] = []


class OffsetCommitResponse(Message):
    API_KEY = 8
    VERSIONS = range(2, 11)
    FLEXIBLE_FROM = 8

    throttle_time_ms: Annotated[Int32, "3+ ignorable"] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], "0+"] = []
