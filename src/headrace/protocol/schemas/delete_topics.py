"""DeleteTopics: API key 20.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class DeleteTopicState(Structure):
    name: Annotated[str | None, "6+"] = None
    topic_id: Annotated[Uuid, "6+"] = ZERO


class DeleteTopicsRequest(Message):
    API_KEY = 20
    VERSIONS = range(1, 7)
    FLEXIBLE_FROM = 4

    topics: Annotated[list[DeleteTopicState], "6+"] = []
    topic_names: Annotated[list[str], "0-5 ignorable"] = []
    timeout_ms: Annotated[Int32, "0+"] = 0


class DeletableTopicResult(Structure):
    name: Annotated[str | None, "0+ nullable=6+"] = ""
    topic_id: Annotated[Uuid, "6+ ignorable"] = ZERO
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "5+ ignorable"] = None


class DeleteTopicsResponse(Message):
    API_KEY = 20
    VERSIONS = range(1, 7)
    FLEXIBLE_FROM = 4

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    responses: Annotated[list[DeletableTopicResult], "0+"] = []
