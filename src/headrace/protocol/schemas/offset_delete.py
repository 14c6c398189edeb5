"""OffsetDelete: API key 47.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class OffsetDeleteRequestPartition(Structure):
    partition_index: int = 0

    FIELDS = """
        partition_index  int32  0+
    """


class OffsetDeleteRequestTopic(Structure):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []

    FIELDS = """
        name        string                          0+
        partitions  []OffsetDeleteRequestPartition  0+
    """


class OffsetDeleteRequest(Message):
    API_KEY = 47
    VERSIONS = range(1)

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []

    FIELDS = """
        group_id  string                      0+
        topics    []OffsetDeleteRequestTopic  0+
    """


class OffsetDeleteResponsePartition(Structure):
    partition_index: int = 0
    error_code: int = 0

    FIELDS = """
        partition_index  int32  0+
        error_code       int16  0+
    """


class OffsetDeleteResponseTopic(Structure):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []

    FIELDS = """
        name        string                           0+
        partitions  []OffsetDeleteResponsePartition  0+
    """


class OffsetDeleteResponse(Message):
    API_KEY = 47
    VERSIONS = range(1)

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = []

    FIELDS = """
        error_code        int16                        0+
        throttle_time_ms  int32                        0+  ignorable
        topics            []OffsetDeleteResponseTopic  0+
    """
