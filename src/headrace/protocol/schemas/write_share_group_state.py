"""WriteShareGroupState: API key 85.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


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


class PartitionData(Structure):
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = []

    FIELDS = """
        partition                int32         0+
        state_epoch              int32         0+
        leader_epoch             int32         0+
        start_offset             int64         0+
        delivery_complete_count  int32         1+  ignorable
        state_batches            []StateBatch  0+
    """


class WriteStateData(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic_id    uuid             0+
        partitions  []PartitionData  0+
    """


class WriteShareGroupStateRequest(Message):
    API_KEY = 85
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[WriteStateData] = []

    FIELDS = """
        group_id  string            0+
        topics    []WriteStateData  0+
    """


class PartitionResult(Structure):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        partition      int32   0+
        error_code     int16   0+
        error_message  string  0+  nullable
    """


class WriteStateResult(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionResult] = []

    FIELDS = """
        topic_id    uuid               0+
        partitions  []PartitionResult  0+
    """


class WriteShareGroupStateResponse(Message):
    API_KEY = 85
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    results: list[WriteStateResult] = []

    FIELDS = """
        results  []WriteStateResult  0+
    """
