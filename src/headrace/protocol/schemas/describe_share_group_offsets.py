"""DescribeShareGroupOffsets: API key 90.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DescribeShareGroupOffsetsRequestTopic(Structure):
    topic_name: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic_name  string   0+
        partitions  []int32  0+
    """


class DescribeShareGroupOffsetsRequestGroup(Structure):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []

    FIELDS = """
        group_id  string                                   0+
        topics    []DescribeShareGroupOffsetsRequestTopic  0+  nullable
    """


class DescribeShareGroupOffsetsRequest(Message):
    API_KEY = 90
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    groups: list[DescribeShareGroupOffsetsRequestGroup] = []

    FIELDS = """
        groups  []DescribeShareGroupOffsetsRequestGroup  0+
    """


class DescribeShareGroupOffsetsResponsePartition(Structure):
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        partition_index  int32   0+
        start_offset     int64   0+
        leader_epoch     int32   0+
        lag              int64   1+  ignorable
        error_code       int16   0+
        error_message    string  0+  nullable
    """


class DescribeShareGroupOffsetsResponseTopic(Structure):
    topic_name: str = ""
    topic_id: Uuid = ZERO
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []

    FIELDS = """
        topic_name  string                                        0+
        topic_id    uuid                                          0+
        partitions  []DescribeShareGroupOffsetsResponsePartition  0+
    """


class DescribeShareGroupOffsetsResponseGroup(Structure):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        group_id       string                                    0+
        topics         []DescribeShareGroupOffsetsResponseTopic  0+
        error_code     int16                                     0+
        error_message  string                                    0+  nullable
    """


class DescribeShareGroupOffsetsResponse(Message):
    API_KEY = 90
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []

    FIELDS = """
        throttle_time_ms  int32                                     0+
        groups            []DescribeShareGroupOffsetsResponseGroup  0+
    """
