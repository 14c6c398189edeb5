"""ReadShareGroupStateSummary: API key 87.

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


class ReadStateSummaryData(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic_id    uuid             0+
        partitions  []PartitionData  0+
    """


class ReadShareGroupStateSummaryRequest(Message):
    API_KEY = 87
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[ReadStateSummaryData] = []

    FIELDS = """
        group_id  string                  0+
        topics    []ReadStateSummaryData  0+
    """


class PartitionResult(Structure):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1

    FIELDS = """
        partition                int32   0+
        error_code               int16   0+
        error_message            string  0+  nullable
        state_epoch              int32   0+
        leader_epoch             int32   0+
        start_offset             int64   0+
        delivery_complete_count  int32   1+  ignorable
    """


class ReadStateSummaryResult(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionResult] = []

    FIELDS = """
        topic_id    uuid               0+
        partitions  []PartitionResult  0+
    """


class ReadShareGroupStateSummaryResponse(Message):
    API_KEY = 87
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    results: list[ReadStateSummaryResult] = []

    FIELDS = """
        results  []ReadStateSummaryResult  0+
    """
