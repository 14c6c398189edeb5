"""AlterPartitionReassignments: API key 45.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class ReassignablePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    replicas: Annotated[list[Int32] | None, "0+"] = None


class ReassignableTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[ReassignablePartition], "0+"] = []


class AlterPartitionReassignmentsRequest(Message):
    API_KEY = 45
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    timeout_ms: Annotated[Int32, "0+"] = 60000
    allow_replication_factor_change: Annotated[bool, "1+"] = True
    topics: Annotated[list[ReassignableTopic], "0+"] = []


class ReassignablePartitionResponse(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""


class ReassignableTopicResponse(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[ReassignablePartitionResponse], "0+"] = []


class AlterPartitionReassignmentsResponse(Message):
    API_KEY = 45
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    allow_replication_factor_change: Annotated[bool, "1+ ignorable"] = True
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    responses: Annotated[list[ReassignableTopicResponse], "0+"] = []
