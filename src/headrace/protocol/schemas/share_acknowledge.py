"""ShareAcknowledge: API key 79.

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


class AcknowledgePartition(Structure):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []

    FIELDS = """
        partition_index          int32                   0+
        acknowledgement_batches  []AcknowledgementBatch  0+
    """


class AcknowledgeTopic(Structure):
    topic_id: Uuid = ZERO
    partitions: list[AcknowledgePartition] = []

    FIELDS = """
        topic_id    uuid                    0+
        partitions  []AcknowledgePartition  0+
    """


class ShareAcknowledgeRequest(Message):
    API_KEY = 79
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = []

    FIELDS = """
        group_id             string              0+  nullable
        member_id            string              0+  nullable
        share_session_epoch  int32               0+
        is_renew_ack         bool                2+
        topics               []AcknowledgeTopic  0+
    """


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: int = 0
    leader_epoch: int = 0

    FIELDS = """
        leader_id     int32  0+
        leader_epoch  int32  0+
    """


class PartitionData(Structure):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()

    FIELDS = """
        partition_index  int32             0+
        error_code       int16             0+
        error_message    string            0+  nullable
        current_leader   LeaderIdAndEpoch  0+
    """


class ShareAcknowledgeTopicResponse(Structure):
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


class ShareAcknowledgeResponse(Message):
    API_KEY = 79
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []

    FIELDS = """
        throttle_time_ms             int32                            0+
        error_code                   int16                            0+
        error_message                string                           0+  nullable
        acquisition_lock_timeout_ms  int32                            2+  ignorable
        responses                    []ShareAcknowledgeTopicResponse  0+
        node_endpoints               []NodeEndpoint                   0+
    """
