"""Fetch: API key 1.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ReplicaState(FrozenStructure, frozen=True):
    replica_id: int = -1
    replica_epoch: int = -1

    FIELDS = """
        replica_id     int32  15+
        replica_epoch  int64  15+
    """


class FetchPartition(Structure):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: Uuid = ZERO
    high_watermark: int = 9223372036854775807

    FIELDS = """
        partition             int32  0+
        current_leader_epoch  int32  9+   ignorable
        fetch_offset          int64  0+
        last_fetched_epoch    int32  12+
        log_start_offset      int64  5+   ignorable
        partition_max_bytes   int32  0+
        replica_directory_id  uuid   17+  tag=0 ignorable
        high_watermark        int64  18+  tag=1 ignorable
    """


class FetchTopic(Structure):
    topic: str = ""
    topic_id: Uuid = ZERO
    partitions: list[FetchPartition] = []

    FIELDS = """
        topic       string            0-12  ignorable
        topic_id    uuid              13+   ignorable
        partitions  []FetchPartition  0+
    """


class ForgottenTopic(Structure):
    topic: str = ""
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic       string   7-12  ignorable
        topic_id    uuid     13+   ignorable
        partitions  []int32  7+
    """


class FetchRequest(Message):
    API_KEY = 1
    VERSIONS = range(4, 19)
    FLEXIBLE_FROM = 12

    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []
    rack_id: str = ""

    FIELDS = """
        cluster_id             string            12+   nullable tag=0 ignorable
        replica_id             int32             0-14
        replica_state          ReplicaState      15+   tag=1
        max_wait_ms            int32             0+
        min_bytes              int32             0+
        max_bytes              int32             3+    ignorable
        isolation_level        int8              4+    ignorable
        session_id             int32             7+    ignorable
        session_epoch          int32             7+    ignorable
        topics                 []FetchTopic      0+
        forgotten_topics_data  []ForgottenTopic  7+
        rack_id                string            11+   ignorable
    """


class EpochEndOffset(FrozenStructure, frozen=True):
    epoch: int = -1
    end_offset: int = -1

    FIELDS = """
        epoch       int32  12+
        end_offset  int64  12+
    """


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: int = -1
    leader_epoch: int = -1

    FIELDS = """
        leader_id     int32  12+
        leader_epoch  int32  12+
    """


class SnapshotId(FrozenStructure, frozen=True):
    end_offset: int = -1
    epoch: int = -1

    FIELDS = """
        end_offset  int64  0+
        epoch       int32  0+
    """


class AbortedTransaction(Structure):
    producer_id: int = 0
    first_offset: int = 0

    FIELDS = """
        producer_id   int64  4+
        first_offset  int64  4+
    """


class PartitionData(Structure):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: int = -1
    records: memoryview | bytes | None = None

    FIELDS = """
        partition_index         int32                 0+
        error_code              int16                 0+
        high_watermark          int64                 0+
        last_stable_offset      int64                 4+   ignorable
        log_start_offset        int64                 5+   ignorable
        diverging_epoch         EpochEndOffset        12+  tag=0
        current_leader          LeaderIdAndEpoch      12+  tag=1
        snapshot_id             SnapshotId            12+  tag=2
        aborted_transactions    []AbortedTransaction  4+   nullable ignorable
        preferred_read_replica  int32                 11+
        records                 records               0+   nullable
    """


class FetchableTopicResponse(Structure):
    topic: str = ""
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic       string           0-12  ignorable
        topic_id    uuid             13+   ignorable
        partitions  []PartitionData  0+
    """


class NodeEndpoint(Structure):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS = """
        node_id  int32   16+
        host     string  16+
        port     int32   16+
        rack     string  16+  nullable
    """


class FetchResponse(Message):
    API_KEY = 1
    VERSIONS = range(4, 19)
    FLEXIBLE_FROM = 12

    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []

    FIELDS = """
        throttle_time_ms  int32                     1+   ignorable
        error_code        int16                     7+   ignorable
        session_id        int32                     7+
        responses         []FetchableTopicResponse  0+
        node_endpoints    []NodeEndpoint            16+  tag=0
    """
