"""DeleteRecords: API key 21.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DeleteRecordsPartition(Structure):
    partition_index: int = 0
    offset: int = 0

    FIELDS = """
        partition_index  int32  0+
        offset           int64  0+
    """


class DeleteRecordsTopic(Structure):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []

    FIELDS = """
        name        string                    0+
        partitions  []DeleteRecordsPartition  0+
    """


class DeleteRecordsRequest(Message):
    API_KEY = 21
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int = 0

    FIELDS = """
        topics      []DeleteRecordsTopic  0+
        timeout_ms  int32                 0+
    """


class DeleteRecordsPartitionResult(Structure):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0

    FIELDS = """
        partition_index  int32  0+
        low_watermark    int64  0+
        error_code       int16  0+
    """


class DeleteRecordsTopicResult(Structure):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []

    FIELDS = """
        name        string                          0+
        partitions  []DeleteRecordsPartitionResult  0+
    """


class DeleteRecordsResponse(Message):
    API_KEY = 21
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = []

    FIELDS = """
        throttle_time_ms  int32                       0+
        topics            []DeleteRecordsTopicResult  0+
    """
