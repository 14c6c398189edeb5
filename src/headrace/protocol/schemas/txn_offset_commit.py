"""TxnOffsetCommit: API key 28.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class TxnOffsetCommitRequestPartition(Structure):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""

    FIELDS = """
        partition_index         int32   0+
        committed_offset        int64   0+
        committed_leader_epoch  int32   2+  ignorable
        committed_metadata      string  0+  nullable
    """


class TxnOffsetCommitRequestTopic(Structure):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []

    FIELDS = """
        name        string                             0+
        partitions  []TxnOffsetCommitRequestPartition  0+
    """


class TxnOffsetCommitRequest(Message):
    API_KEY = 28
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = []

    FIELDS = """
        transactional_id   string                         0+
        group_id           string                         0+
        producer_id        int64                          0+
        producer_epoch     int16                          0+
        generation_id      int32                          3+
        member_id          string                         3+
        group_instance_id  string                         3+  nullable
        topics             []TxnOffsetCommitRequestTopic  0+
    """


class TxnOffsetCommitResponsePartition(Structure):
    partition_index: int = 0
    error_code: int = 0

    FIELDS = """
        partition_index  int32  0+
        error_code       int16  0+
    """


class TxnOffsetCommitResponseTopic(Structure):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []

    FIELDS = """
        name        string                              0+
        partitions  []TxnOffsetCommitResponsePartition  0+
    """


class TxnOffsetCommitResponse(Message):
    API_KEY = 28
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = []

    FIELDS = """
        throttle_time_ms  int32                           0+
        topics            []TxnOffsetCommitResponseTopic  0+
    """
