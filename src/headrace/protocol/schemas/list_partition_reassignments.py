"""ListPartitionReassignments: API key 46.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class ListPartitionReassignmentsTopics(Structure):
    name: Annotated[str, "0+"] = ""
    partition_indexes: Annotated[list[Int32], "0+"] = []


class ListPartitionReassignmentsRequest(Message):
    API_KEY = 46
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    timeout_ms: Annotated[Int32, "0+"] = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, "0+"] = None


class OngoingPartitionReassignment(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    replicas: Annotated[list[Int32], "0+"] = []
    adding_replicas: Annotated[list[Int32], "0+"] = []
    removing_replicas: Annotated[list[Int32], "0+"] = []


class OngoingTopicReassignment(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[OngoingPartitionReassignment], "0+"] = []


class ListPartitionReassignmentsResponse(Message):
    API_KEY = 46
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    topics: Annotated[list[OngoingTopicReassignment], "0+"] = []
