"""DeleteShareGroupState: API key 86.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class PartitionData(Structure):
    partition: int = 0

    FIELDS = """
        partition  int32  0+
    """


class DeleteStateData(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionData] = []

    FIELDS = """
        topic_id    uuid             0+
        partitions  []PartitionData  0+
    """


class DeleteShareGroupStateRequest(Message):
    API_KEY = 86
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[DeleteStateData] = []

    FIELDS = """
        group_id  string             0+
        topics    []DeleteStateData  0+
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


class DeleteStateResult(Structure):
    topic_id: Uuid = ZERO
    partitions: list[PartitionResult] = []

    FIELDS = """
        topic_id    uuid               0+
        partitions  []PartitionResult  0+
    """


class DeleteShareGroupStateResponse(Message):
    API_KEY = 86
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    results: list[DeleteStateResult] = []

    FIELDS = """
        results  []DeleteStateResult  0+
    """
