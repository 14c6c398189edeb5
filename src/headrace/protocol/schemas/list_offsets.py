"""ListOffsets: API key 2.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ListOffsetsPartition(Structure):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0

    FIELDS = """
        partition_index       int32  0+
        current_leader_epoch  int32  4+  ignorable
        timestamp             int64  0+
    """


class ListOffsetsTopic(Structure):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []

    FIELDS = """
        name        string                  0+
        partitions  []ListOffsetsPartition  0+
    """


class ListOffsetsRequest(Message):
    API_KEY = 2
    VERSIONS = range(1, 12)
    FLEXIBLE_FROM = 6

    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: int = 0

    FIELDS = """
        replica_id       int32               0+
        isolation_level  int8                2+
        topics           []ListOffsetsTopic  0+
        timeout_ms       int32               10+  ignorable
    """


class ListOffsetsPartitionResponse(Structure):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1

    FIELDS = """
        partition_index  int32  0+
        error_code       int16  0+
        timestamp        int64  1+
        offset           int64  1+
        leader_epoch     int32  4+
    """


class ListOffsetsTopicResponse(Structure):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []

    FIELDS = """
        name        string                          0+
        partitions  []ListOffsetsPartitionResponse  0+
    """


class ListOffsetsResponse(Message):
    API_KEY = 2
    VERSIONS = range(1, 12)
    FLEXIBLE_FROM = 6

    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = []

    FIELDS = """
        throttle_time_ms  int32                       2+  ignorable
        topics            []ListOffsetsTopicResponse  0+
    """
