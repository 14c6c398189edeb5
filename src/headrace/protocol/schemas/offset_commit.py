"""OffsetCommit: API key 8.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class OffsetCommitRequestPartition(Structure):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""

    FIELDS = """
        partition_index         int32   0+
        committed_offset        int64   0+
        committed_leader_epoch  int32   6+  ignorable
        committed_metadata      string  0+  nullable
    """


class OffsetCommitRequestTopic(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    partitions: list[OffsetCommitRequestPartition] = []

    FIELDS = """
        name        string                          0-9  ignorable
        topic_id    uuid                            10+  ignorable
        partitions  []OffsetCommitRequestPartition  0+
    """


class OffsetCommitRequest(Message):
    API_KEY = 8
    VERSIONS = range(2, 11)
    FLEXIBLE_FROM = 8

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = []

    FIELDS = """
        group_id                       string                      0+
        generation_id_or_member_epoch  int32                       1+   ignorable
        member_id                      string                      1+   ignorable
        group_instance_id              string                      7+   nullable
        retention_time_ms              int64                       2-4  ignorable
        topics                         []OffsetCommitRequestTopic  0+
    """


class OffsetCommitResponsePartition(Structure):
    partition_index: int = 0
    error_code: int = 0

    FIELDS = """
        partition_index  int32  0+
        error_code       int16  0+
    """


class OffsetCommitResponseTopic(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    partitions: list[OffsetCommitResponsePartition] = []

    FIELDS = """
        name        string                           0-9  ignorable
        topic_id    uuid                             10+  ignorable
        partitions  []OffsetCommitResponsePartition  0+
    """


class OffsetCommitResponse(Message):
    API_KEY = 8
    VERSIONS = range(2, 11)
    FLEXIBLE_FROM = 8

    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = []

    FIELDS = """
        throttle_time_ms  int32                        3+  ignorable
        topics            []OffsetCommitResponseTopic  0+
    """
