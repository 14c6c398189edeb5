"""OffsetForLeaderEpoch: API key 23.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class OffsetForLeaderPartition(Structure):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0

    FIELDS = """
        partition             int32  0+
        current_leader_epoch  int32  2+  ignorable
        leader_epoch          int32  0+
    """


class OffsetForLeaderTopic(Structure):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []

    FIELDS = """
        topic       string                      0+
        partitions  []OffsetForLeaderPartition  0+
    """


class OffsetForLeaderEpochRequest(Message):
    API_KEY = 23
    VERSIONS = range(2, 5)
    FLEXIBLE_FROM = 4

    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = []

    FIELDS = """
        replica_id  int32                   3+  ignorable
        topics      []OffsetForLeaderTopic  0+
    """


class EpochEndOffset(Structure):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1

    FIELDS = """
        error_code    int16  0+
        partition     int32  0+
        leader_epoch  int32  1+  ignorable
        end_offset    int64  0+
    """


class OffsetForLeaderTopicResult(Structure):
    topic: str = ""
    partitions: list[EpochEndOffset] = []

    FIELDS = """
        topic       string            0+
        partitions  []EpochEndOffset  0+
    """


class OffsetForLeaderEpochResponse(Message):
    API_KEY = 23
    VERSIONS = range(2, 5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = []

    FIELDS = """
        throttle_time_ms  int32                         2+  ignorable
        topics            []OffsetForLeaderTopicResult  0+
    """
