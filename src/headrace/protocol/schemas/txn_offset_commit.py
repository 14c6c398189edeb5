"""TxnOffsetCommit: API key 28.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class TxnOffsetCommitRequestPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    committed_offset: Annotated[Int64, "0+"] = 0
    committed_leader_epoch: Annotated[Int32, "2+ ignorable"] = -1
    committed_metadata: Annotated[str | None, "0+"] = ""


class TxnOffsetCommitRequestTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[TxnOffsetCommitRequestPartition], "0+"] = []


class TxnOffsetCommitRequest(Message):
    API_KEY = 28
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    transactional_id: Annotated[str, "0+"] = ""
    group_id: Annotated[str, "0+"] = ""
    producer_id: Annotated[Int64, "0+"] = 0
    producer_epoch: Annotated[Int16, "0+"] = 0
    generation_id: Annotated[Int32, "3+"] = -1
    member_id: Annotated[str, "3+"] = ""
    group_instance_id: Annotated[str | None, "3+"] = None
    topics: Annotated[list[TxnOffsetCommitRequestTopic], "0+"] = []


class TxnOffsetCommitResponsePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0


class TxnOffsetCommitResponseTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[TxnOffsetCommitResponsePartition], "0+"] = []


class TxnOffsetCommitResponse(Message):
    API_KEY = 28
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    topics: Annotated[list[TxnOffsetCommitResponseTopic], "0+"] = []
