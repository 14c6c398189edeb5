"""DescribeTopicPartitions: API key 75.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class TopicRequest(Structure):
    name: str = ""

    FIELDS = """
        name  string  0+
    """


class DescribeTopicPartitionsRequestCursor(FrozenStructure, frozen=True):
    topic_name: str = ""
    partition_index: int = 0

    FIELDS = """
        topic_name       string  0+
        partition_index  int32   0+
    """


class DescribeTopicPartitionsRequest(Message):
    API_KEY = 75
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: list[TopicRequest] = []
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequestCursor | None = None

    FIELDS = """
        topics                    []TopicRequest                        0+
        response_partition_limit  int32                                 0+
        cursor                    DescribeTopicPartitionsRequestCursor  0+  nullable
    """


class DescribeTopicPartitionsResponsePartition(Structure):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = []
    isr_nodes: list[int] = []
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = []

    FIELDS = """
        error_code                int16    0+
        partition_index           int32    0+
        leader_id                 int32    0+
        leader_epoch              int32    0+  ignorable
        replica_nodes             []int32  0+
        isr_nodes                 []int32  0+
        eligible_leader_replicas  []int32  0+  nullable
        last_known_elr            []int32  0+  nullable
        offline_replicas          []int32  0+  ignorable
    """


class DescribeTopicPartitionsResponseTopic(Structure):
    error_code: int = 0
    name: str | None = ""
    topic_id: Uuid = ZERO
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: int = -2147483648

    FIELDS = """
        error_code                   int16                                       0+
        name                         string                                      0+  nullable
        topic_id                     uuid                                        0+  ignorable
        is_internal                  bool                                        0+  ignorable
        partitions                   []DescribeTopicPartitionsResponsePartition  0+
        topic_authorized_operations  int32                                       0+
    """


class DescribeTopicPartitionsResponseCursor(FrozenStructure, frozen=True):
    topic_name: str = ""
    partition_index: int = 0

    FIELDS = """
        topic_name       string  0+
        partition_index  int32   0+
    """


class DescribeTopicPartitionsResponse(Message):
    API_KEY = 75
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: DescribeTopicPartitionsResponseCursor | None = None

    FIELDS = """
        throttle_time_ms  int32                                   0+  ignorable
        topics            []DescribeTopicPartitionsResponseTopic  0+
        next_cursor       DescribeTopicPartitionsResponseCursor   0+  nullable
    """
