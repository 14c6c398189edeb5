"""AlterShareGroupOffsets: API key 91.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class AlterShareGroupOffsetsRequestPartition(Structure):
    partition_index: int = 0
    start_offset: int = 0

    FIELDS = """
        partition_index  int32  0+
        start_offset     int64  0+
    """


class AlterShareGroupOffsetsRequestTopic(Structure):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []

    FIELDS = """
        topic_name  string                                    0+
        partitions  []AlterShareGroupOffsetsRequestPartition  0+
    """


class AlterShareGroupOffsetsRequest(Message):
    API_KEY = 91
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []

    FIELDS = """
        group_id  string                                0+
        topics    []AlterShareGroupOffsetsRequestTopic  0+
    """


class AlterShareGroupOffsetsResponsePartition(Structure):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        partition_index  int32   0+
        error_code       int16   0+
        error_message    string  0+  nullable
    """


class AlterShareGroupOffsetsResponseTopic(Structure):
    topic_name: str = ""
    topic_id: Uuid = ZERO
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []

    FIELDS = """
        topic_name  string                                     0+
        topic_id    uuid                                       0+
        partitions  []AlterShareGroupOffsetsResponsePartition  0+
    """


class AlterShareGroupOffsetsResponse(Message):
    API_KEY = 91
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []

    FIELDS = """
        throttle_time_ms  int32                                  0+
        error_code        int16                                  0+
        error_message     string                                 0+  nullable
        responses         []AlterShareGroupOffsetsResponseTopic  0+
    """
