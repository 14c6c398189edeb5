"""ShareFetch: API key 78.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class AcknowledgementBatch(Structure):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = []

    FIELDS = """
        first_offset       int64   0+
        last_offset        int64   0+
        acknowledge_types  []int8  0+
    """


class FetchPartition(Structure):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []

    FIELDS = """
        partition_index          int32                   0+
        acknowledgement_batches  []AcknowledgementBatch  0+
    """


class FetchTopic(Structure):
    topic_id: Uuid = ZERO
    partitions: list[FetchPartition] = []

    FIELDS = """
        topic_id    uuid              0+
        partitions  []FetchPartition  0+
    """


class ForgottenTopic(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class ShareFetchRequest(Message):
    API_KEY = 78
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []

    FIELDS = """
        group_id               string            0+  nullable
        member_id              string            0+  nullable
        share_session_epoch    int32             0+
        max_wait_ms            int32             0+
        min_bytes              int32             0+
        max_bytes              int32             0+
        max_records            int32             1+
        batch_size             int32             1+
        share_acquire_mode     int8              2+  ignorable
        is_renew_ack           bool              2+
        topics                 []FetchTopic      0+
        forgotten_topics_data  []ForgottenTopic  0+
    """


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS = """
        leader_id     int32  0+
        leader_epoch  int32  0+
    """


class AcquiredRecords(Structure):
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0

    FIELDS = """
        first_offset    int64  0+
        last_offset     int64  0+
        delivery_count  int16  0+
    """


class PartitionData(Structure):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: memoryview | bytes | None = None
    acquired_records: list[AcquiredRecords] = []

    FIELDS = """
        partition_index            int32              0+
        error_code                 int16              0+
        error_message              string             0+  nullable
        acknowledge_error_code     int16              0+
        acknowledge_error_message  string             0+  nullable
        current_leader             LeaderIdAndEpoch   0+
        records                    records            0+  nullable=0
        acquired_records           []AcquiredRecords  0+
    """


class ShareFetchableTopicResponse(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic_id    uuid             0+
        partitions  []PartitionData  0+
    """


class NodeEndpoint(Structure):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS = """
        node_id  int32   0+
        host     string  0+
        port     int32   0+
        rack     string  0+  nullable
    """


class ShareFetchResponse(Message):
    API_KEY = 78
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []

    FIELDS = """
        throttle_time_ms             int32                          0+
        error_code                   int16                          0+
        error_message                string                         0+  nullable
        acquisition_lock_timeout_ms  int32                          1+
        responses                    []ShareFetchableTopicResponse  0+
        node_endpoints               []NodeEndpoint                 0+
    """
