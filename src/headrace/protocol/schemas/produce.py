"""Produce: API key 0.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class PartitionProduceData(Structure):
    index: int = 0
    records: memoryview | bytes | None = None

    FIELDS = """
        index    int32    0+
        records  records  0+  nullable
    """


class TopicProduceData(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    partition_data: list[PartitionProduceData] = []

    FIELDS = """
        name            string                  0-12  ignorable
        topic_id        uuid                    13+   ignorable
        partition_data  []PartitionProduceData  0+
    """


class ProduceRequest(Message):
    API_KEY = 0
    VERSIONS = range(3, 14)
    FLEXIBLE_FROM = 9

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = []

    FIELDS = """
        transactional_id  string              3+  nullable
        acks              int16               0+
        timeout_ms        int32               0+
        topic_data        []TopicProduceData  0+
    """


class BatchIndexAndErrorMessage(Structure):
    batch_index: int = 0
    batch_index_error_message: str | None = None

    FIELDS = """
        batch_index                int32   8+
        batch_index_error_message  string  8+  nullable
    """


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: int = -1
    leader_epoch: int = -1

    FIELDS = """
        leader_id     int32  10+
        leader_epoch  int32  10+
    """


class PartitionProduceResponse(Structure):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = []
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()

    FIELDS = """
        index               int32                        0+
        error_code          int16                        0+
        base_offset         int64                        0+
        log_append_time_ms  int64                        2+   ignorable
        log_start_offset    int64                        5+   ignorable
        record_errors       []BatchIndexAndErrorMessage  8+   ignorable
        error_message       string                       8+   nullable ignorable
        current_leader      LeaderIdAndEpoch             10+  tag=0
    """


class TopicProduceResponse(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    partition_responses: list[PartitionProduceResponse] = []

    FIELDS = """
        name                 string                      0-12  ignorable
        topic_id             uuid                        13+   ignorable
        partition_responses  []PartitionProduceResponse  0+
    """


class NodeEndpoint(Structure):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS = """
        node_id  int32   10+
        host     string  10+
        port     int32   10+
        rack     string  10+  nullable
    """


class ProduceResponse(Message):
    API_KEY = 0
    VERSIONS = range(3, 14)
    FLEXIBLE_FROM = 9

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = []

    FIELDS = """
        responses         []TopicProduceResponse  0+
        throttle_time_ms  int32                   1+   ignorable
        node_endpoints    []NodeEndpoint          10+  tag=0
    """
