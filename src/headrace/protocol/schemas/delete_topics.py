"""DeleteTopics: API key 20.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DeleteTopicState(Structure):
    name: str | None = None
    topic_id: Uuid = ZERO

    FIELDS = """
        name      string  6+  nullable
        topic_id  uuid    6+
    """


class DeleteTopicsRequest(Message):
    API_KEY = 20
    VERSIONS = range(1, 7)
    FLEXIBLE_FROM = 4

    topics: list[DeleteTopicState] = []
    topic_names: list[str] = []
    timeout_ms: int = 0

    FIELDS = """
        topics       []DeleteTopicState  6+
        topic_names  []string            0-5  ignorable
        timeout_ms   int32               0+
    """


class DeletableTopicResult(Structure):
    name: str | None = ""
    topic_id: Uuid = ZERO
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        name           string  0+  nullable=6+
        topic_id       uuid    6+  ignorable
        error_code     int16   0+
        error_message  string  5+  nullable ignorable
    """


class DeleteTopicsResponse(Message):
    API_KEY = 20
    VERSIONS = range(1, 7)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = []

    FIELDS = """
        throttle_time_ms  int32                   1+  ignorable
        responses         []DeletableTopicResult  0+
    """
