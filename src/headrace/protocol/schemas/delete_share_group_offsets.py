"""DeleteShareGroupOffsets: API key 92.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DeleteShareGroupOffsetsRequestTopic(Structure):
    topic_name: str = ""

    FIELDS = """
        topic_name  string  0+
    """


class DeleteShareGroupOffsetsRequest(Message):
    API_KEY = 92
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []

    FIELDS = """
        group_id  string                                 0+
        topics    []DeleteShareGroupOffsetsRequestTopic  0+
    """


class DeleteShareGroupOffsetsResponseTopic(Structure):
    topic_name: str = ""
    topic_id: Uuid = ZERO
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        topic_name     string  0+
        topic_id       uuid    0+
        error_code     int16   0+
        error_message  string  0+  nullable
    """


class DeleteShareGroupOffsetsResponse(Message):
    API_KEY = 92
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []

    FIELDS = """
        throttle_time_ms  int32                                   0+
        error_code        int16                                   0+
        error_message     string                                  0+  nullable
        responses         []DeleteShareGroupOffsetsResponseTopic  0+
    """
