"""InitializeShareGroupState: API key 83.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class PartitionData(Structure):
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0

    FIELDS = """
        partition     int32  0+
        state_epoch   int32  0+
        start_offset  int64  0+
    """


class InitializeStateData(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic_id    uuid             0+
        partitions  []PartitionData  0+
    """


class InitializeShareGroupStateRequest(Message):
    API_KEY = 83
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[InitializeStateData] = []

    FIELDS = """
        group_id  string                 0+
        topics    []InitializeStateData  0+
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


class InitializeStateResult(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionResult] = []

    FIELDS = """
        topic_id    uuid               0+
        partitions  []PartitionResult  0+
    """


class InitializeShareGroupStateResponse(Message):
    API_KEY = 83
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    results: list[InitializeStateResult] = []

    FIELDS = """
        results  []InitializeStateResult  0+
    """
