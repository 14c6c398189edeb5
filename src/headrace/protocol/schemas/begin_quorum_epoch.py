"""BeginQuorumEpoch: API key 53.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class BeginQuorumEpochRequestPartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    voter_directory_id: Annotated[Uuid, "1+ ignorable"] = ZERO
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class BeginQuorumEpochRequestTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[BeginQuorumEpochRequestPartitionData], "0+"] = []


class LeaderEndpoint(Structure):
    name: Annotated[str, "1+"] = ""
    host: Annotated[str, "1+"] = ""
    port: Annotated[Uint16, "1+"] = 0


class BeginQuorumEpochRequest(Message):
    API_KEY = 53
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    cluster_id: Annotated[str | None, "0+"] = None
    voter_id: Annotated[Int32, "1+ ignorable"] = -1
    topics: Annotated[list[BeginQuorumEpochRequestTopicData], "0+"] = []
    leader_endpoints: Annotated[list[LeaderEndpoint], "1+ ignorable"] = []


class BeginQuorumEpochResponsePartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class BeginQuorumEpochResponseTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[BeginQuorumEpochResponsePartitionData], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "1+"] = 0
    host: Annotated[str, "1+"] = ""
    port: Annotated[Uint16, "1+"] = 0


class BeginQuorumEpochResponse(Message):
    API_KEY = 53
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    error_code: Annotated[Int16, "0+"] = 0
    topics: Annotated[list[BeginQuorumEpochResponseTopicData], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "1+ tag=0"] = []
