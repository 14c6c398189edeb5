"""DescribeProducers: API key 61.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class TopicRequest(Structure):
    name: str = ""
    partition_indexes: list[int] = []

    FIELDS = """
        name               string   0+
        partition_indexes  []int32  0+
    """


class DescribeProducersRequest(Message):
    API_KEY = 61
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: list[TopicRequest] = []

    FIELDS = """
        topics  []TopicRequest  0+
    """


class ProducerState(Structure):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1

    FIELDS = """
        producer_id               int64  0+
        producer_epoch            int32  0+
        last_sequence             int32  0+
        last_timestamp            int64  0+
        coordinator_epoch         int32  0+
        current_txn_start_offset  int64  0+
    """


class PartitionResponse(Structure):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []

    FIELDS = """
        partition_index   int32            0+
        error_code        int16            0+
        error_message     string           0+  nullable
        active_producers  []ProducerState  0+
    """


class TopicResponse(Structure):
    name: str = ""
    partitions: list[PartitionResponse] = []

    FIELDS = """
        name        string               0+
        partitions  []PartitionResponse  0+
    """


class DescribeProducersResponse(Message):
    API_KEY = 61
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    topics: list[TopicResponse] = []

    FIELDS = """
        throttle_time_ms  int32            0+
        topics            []TopicResponse  0+
    """
