"""AlterPartitionReassignments: API key 45.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ReassignablePartition(Structure):
    partition_index: int = 0
    replicas: list[int] | None = None

    FIELDS = """
        partition_index  int32    0+
        replicas         []int32  0+  nullable
    """


class ReassignableTopic(Structure):
    name: str = ""
    partitions: list[ReassignablePartition] = []

    FIELDS = """
        name        string                   0+
        partitions  []ReassignablePartition  0+
    """


class AlterPartitionReassignmentsRequest(Message):
    API_KEY = 45
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = []

    FIELDS = """
        timeout_ms                       int32                0+
        allow_replication_factor_change  bool                 1+
        topics                           []ReassignableTopic  0+
    """


class ReassignablePartitionResponse(Structure):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS = """
        partition_index  int32   0+
        error_code       int16   0+
        error_message    string  0+  nullable
    """


class ReassignableTopicResponse(Structure):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []

    FIELDS = """
        name        string                           0+
        partitions  []ReassignablePartitionResponse  0+
    """


class AlterPartitionReassignmentsResponse(Message):
    API_KEY = 45
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []

    FIELDS = """
        throttle_time_ms                 int32                        0+
        allow_replication_factor_change  bool                         1+  ignorable
        error_code                       int16                        0+
        error_message                    string                       0+  nullable
        responses                        []ReassignableTopicResponse  0+
    """
