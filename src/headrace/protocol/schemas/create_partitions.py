"""CreatePartitions: API key 37.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class CreatePartitionsAssignment(Structure):
    broker_ids: Annotated[list[Int32], "0+"] = []


class CreatePartitionsTopic(Structure):
    name: Annotated[str, "0+"] = ""
    count: Annotated[Int32, "0+"] = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, "0+"] = []


class CreatePartitionsRequest(Message):
    API_KEY = 37
    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    topics: Annotated[list[CreatePartitionsTopic], "0+"] = []
    timeout_ms: Annotated[Int32, "0+"] = 0
    validate_only: Annotated[bool, "0+"] = False


class CreatePartitionsTopicResult(Structure):
    name: Annotated[str, "0+"] = ""
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None


class CreatePartitionsResponse(Message):
    API_KEY = 37
    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    results: Annotated[list[CreatePartitionsTopicResult], "0+"] = []
