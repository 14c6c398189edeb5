"""ReadShareGroupState: API key 84.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class PartitionData(Structure):
    partition: int = 0
    leader_epoch: int = 0

    FIELDS = """
        partition     int32  0+
        leader_epoch  int32  0+
    """


class ReadStateData(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic_id    uuid             0+
        partitions  []PartitionData  0+
    """


class ReadShareGroupStateRequest(Message):
    API_KEY = 84
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[ReadStateData] = []

    FIELDS = """
        group_id  string           0+
        topics    []ReadStateData  0+
    """


class StateBatch(Structure):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS = """
        first_offset    int64  0+
        last_offset     int64  0+
        delivery_state  int8   0+
        delivery_count  int16  0+
    """


class PartitionResult(Structure):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = []

    FIELDS = """
        partition      int32         0+
        error_code     int16         0+
        error_message  string        0+  nullable
        state_epoch    int32         0+
        start_offset   int64         0+
        state_batches  []StateBatch  0+
    """


class ReadStateResult(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionResult] = []

    FIELDS = """
        topic_id    uuid               0+
        partitions  []PartitionResult  0+
    """


class ReadShareGroupStateResponse(Message):
    API_KEY = 84
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    results: list[ReadStateResult] = []

    FIELDS = """
        results  []ReadStateResult  0+
    """
