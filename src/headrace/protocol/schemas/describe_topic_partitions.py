"""DescribeTopicPartitions: API key 75.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import FrozenStructure, Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class TopicRequest(Structure):
    name: Annotated[str, "0+"] = ""


class DescribeTopicPartitionsRequestCursor(FrozenStructure, frozen=True):
    topic_name: Annotated[str, "0+"] = ""
    partition_index: Annotated[Int32, "0+"] = 0


class DescribeTopicPartitionsRequest(Message):
    API_KEY = 75
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: Annotated[list[TopicRequest], "0+"] = []
    response_partition_limit: Annotated[Int32, "0+"] = 2000
    cursor: Annotated[DescribeTopicPartitionsRequestCursor | None, "0+"] = None


class DescribeTopicPartitionsResponsePartition(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    partition_index: Annotated[Int32, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+ ignorable"] = -1
    replica_nodes: Annotated[list[Int32], "0+"] = []
    isr_nodes: Annotated[list[Int32], "0+"] = []
    eligible_leader_replicas: Annotated[list[Int32] | None, "0+"] = None
    last_known_elr: Annotated[list[Int32] | None, "0+"] = None
    offline_replicas: Annotated[list[Int32], "0+ ignorable"] = []


class DescribeTopicPartitionsResponseTopic(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    name: Annotated[str | None, "0+"] = ""
    topic_id: Annotated[Uuid, "0+ ignorable"] = ZERO
    is_internal: Annotated[bool, "0+ ignorable"] = False
    partitions: Annotated[list[DescribeTopicPartitionsResponsePartition], "0+"] = []
    topic_authorized_operations: Annotated[Int32, "0+"] = -2147483648


class DescribeTopicPartitionsResponseCursor(FrozenStructure, frozen=True):
    topic_name: Annotated[str, "0+"] = ""
    partition_index: Annotated[Int32, "0+"] = 0


class DescribeTopicPartitionsResponse(Message):
    API_KEY = 75
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+ ignorable"] = 0
    topics: Annotated[list[DescribeTopicPartitionsResponseTopic], "0+"] = []
    next_cursor: Annotated[DescribeTopicPartitionsResponseCursor | None, "0+"] = None
