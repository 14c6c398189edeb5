"""AssignReplicasToDirs: API key 73.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class AssignReplicasToDirsRequestPartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0


class AssignReplicasToDirsRequestTopicData(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[AssignReplicasToDirsRequestPartitionData], "0+"] = []


class AssignReplicasToDirsRequestDirectoryData(Structure):
    id: Annotated[Uuid, "0+"] = ZERO
    topics: Annotated[list[AssignReplicasToDirsRequestTopicData], "0+"] = []


class AssignReplicasToDirsRequest(Message):
    API_KEY = 73
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = -1
    directories: Annotated[list[AssignReplicasToDirsRequestDirectoryData], "0+"] = []


class AssignReplicasToDirsResponsePartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0


class AssignReplicasToDirsResponseTopicData(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[AssignReplicasToDirsResponsePartitionData], "0+"] = []


class AssignReplicasToDirsResponseDirectoryData(Structure):
    id: Annotated[Uuid, "0+"] = ZERO
    topics: Annotated[list[AssignReplicasToDirsResponseTopicData], "0+"] = []


class AssignReplicasToDirsResponse(Message):
    API_KEY = 73
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    directories: Annotated[list[AssignReplicasToDirsResponseDirectoryData], "0+"] = []
