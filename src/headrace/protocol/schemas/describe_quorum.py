"""DescribeQuorum: API key 55.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DescribeQuorumRequestPartitionData(Structure):
    partition_index: int = 0

    FIELDS = """
        partition_index  int32  0+
    """


class DescribeQuorumRequestTopicData(Structure):
    topic_name: str = ""
    partitions: list[DescribeQuorumRequestPartitionData] = []

    FIELDS = """
        topic_name  string                                0+
        partitions  []DescribeQuorumRequestPartitionData  0+
    """


class DescribeQuorumRequest(Message):
    API_KEY = 55
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    topics: list[DescribeQuorumRequestTopicData] = []

    FIELDS = """
        topics  []DescribeQuorumRequestTopicData  0+
    """


class ReplicaState(Structure):
    replica_id: int = 0
    replica_directory_id: Uuid = ZERO
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1

    FIELDS = """
        replica_id                int32  0+
        replica_directory_id      uuid   2+
        log_end_offset            int64  0+
        last_fetch_timestamp      int64  1+  ignorable
        last_caught_up_timestamp  int64  1+  ignorable
    """


class DescribeQuorumResponsePartitionData(Structure):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []

    FIELDS = """
        partition_index  int32           0+
        error_code       int16           0+
        error_message    string          2+  nullable ignorable
        leader_id        int32           0+
        leader_epoch     int32           0+
        high_watermark   int64           0+
        current_voters   []ReplicaState  0+
        observers        []ReplicaState  0+
    """


class DescribeQuorumResponseTopicData(Structure):
    topic_name: str = ""
    partitions: list[DescribeQuorumResponsePartitionData] = []

    FIELDS = """
        topic_name  string                                 0+
        partitions  []DescribeQuorumResponsePartitionData  0+
    """


class Listener(Structure):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS = """
        name  string  2+
        host  string  2+
        port  uint16  2+
    """


class Node(Structure):
    node_id: int = 0
    listeners: list[Listener] = []

    FIELDS = """
        node_id    int32       2+
        listeners  []Listener  2+
    """


class DescribeQuorumResponse(Message):
    API_KEY = 55
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    error_code: int = 0
    error_message: str | None = ""
    topics: list[DescribeQuorumResponseTopicData] = []
    nodes: list[Node] = []

    FIELDS = """
        error_code     int16                              0+
        error_message  string                             2+  nullable ignorable
        topics         []DescribeQuorumResponseTopicData  0+
        nodes          []Node                             2+
    """
