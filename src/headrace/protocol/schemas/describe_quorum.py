"""DescribeQuorum: API key 55.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class DescribeQuorumRequestPartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0


class DescribeQuorumRequestTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[DescribeQuorumRequestPartitionData], "0+"] = []


class DescribeQuorumRequest(Message):
    API_KEY = 55
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    topics: Annotated[list[DescribeQuorumRequestTopicData], "0+"] = []


class ReplicaState(Structure):
    replica_id: Annotated[Int32, "0+"] = 0
    replica_directory_id: Annotated[Uuid, "2+"] = ZERO
    log_end_offset: Annotated[Int64, "0+"] = 0
    last_fetch_timestamp: Annotated[Int64, "1+ ignorable"] = -1
    last_caught_up_timestamp: Annotated[Int64, "1+ ignorable"] = -1


class DescribeQuorumResponsePartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "2+ ignorable"] = ""
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    high_watermark: Annotated[Int64, "0+"] = 0
    current_voters: Annotated[list[ReplicaState], "0+"] = []
    observers: Annotated[list[ReplicaState], "0+"] = []


class DescribeQuorumResponseTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[DescribeQuorumResponsePartitionData], "0+"] = []


class Listener(Structure):
    name: Annotated[str, "2+"] = ""
    host: Annotated[str, "2+"] = ""
    port: Annotated[Uint16, "2+"] = 0


class Node(Structure):
    node_id: Annotated[Int32, "2+"] = 0
    listeners: Annotated[list[Listener], "2+"] = []


class DescribeQuorumResponse(Message):
    API_KEY = 55
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "2+ ignorable"] = ""
    topics: Annotated[list[DescribeQuorumResponseTopicData], "0+"] = []
    nodes: Annotated[list[Node], "2+"] = []
