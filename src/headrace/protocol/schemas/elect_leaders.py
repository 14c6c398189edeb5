"""ElectLeaders: API key 43.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class TopicPartitions(Structure):
    topic: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic       string   0+
        partitions  []int32  0+
    """


class ElectLeadersRequest(Message):
    API_KEY = 43
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: int = 60000

    FIELDS = """
        election_type     int8               1+
        topic_partitions  []TopicPartitions  0+  nullable
        timeout_ms        int32              0+
    """


class PartitionResult(Structure):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS = """
        partition_id   int32   0+
        error_code     int16   0+
        error_message  string  0+  nullable
    """


class ReplicaElectionResult(Structure):
    topic: str = ""
    partition_result: list[PartitionResult] = []

    FIELDS = """
        topic             string             0+
        partition_result  []PartitionResult  0+
    """


class ElectLeadersResponse(Message):
    API_KEY = 43
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = []

    FIELDS = """
        throttle_time_ms          int32                    0+
        error_code                int16                    1+
        replica_election_results  []ReplicaElectionResult  0+
    """
