"""EndQuorumEpoch: API key 54.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class ReplicaInfo(Structure):
    candidate_id: Annotated[Int32, "1+"] = 0
    candidate_directory_id: Annotated[Uuid, "1+"] = ZERO


class EndQuorumEpochRequestPartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    preferred_successors: Annotated[list[Int32], "0 ignorable"] = []
    preferred_candidates: Annotated[list[ReplicaInfo], "1+ ignorable"] = []


class EndQuorumEpochRequestTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[EndQuorumEpochRequestPartitionData], "0+"] = []


class LeaderEndpoint(Structure):
    name: Annotated[str, "1+"] = ""
    host: Annotated[str, "1+"] = ""
    port: Annotated[Uint16, "1+"] = 0


class EndQuorumEpochRequest(Message):
    API_KEY = 54
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    cluster_id: Annotated[str | None, "0+"] = None
    topics: Annotated[list[EndQuorumEpochRequestTopicData], "0+"] = []
    leader_endpoints: Annotated[list[LeaderEndpoint], "1+ ignorable"] = []


class EndQuorumEpochResponsePartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class EndQuorumEpochResponseTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[EndQuorumEpochResponsePartitionData], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "1+"] = 0
    host: Annotated[str, "1+"] = ""
    port: Annotated[Uint16, "1+"] = 0


class EndQuorumEpochResponse(Message):
    API_KEY = 54
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    error_code: Annotated[Int16, "0+"] = 0
    topics: Annotated[list[EndQuorumEpochResponseTopicData], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "1+ tag=0"] = []
