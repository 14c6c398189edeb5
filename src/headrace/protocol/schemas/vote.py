"""Vote: API key 52.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class VoteRequestPartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    replica_epoch: Annotated[Int32, "0+"] = 0
    replica_id: Annotated[Int32, "0+"] = 0
    replica_directory_id: Annotated[Uuid, "1+ ignorable"] = ZERO
    voter_directory_id: Annotated[Uuid, "1+ ignorable"] = ZERO
    last_offset_epoch: Annotated[Int32, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    pre_vote: Annotated[bool, "2+"] = False


class VoteRequestTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[VoteRequestPartitionData], "0+"] = []


class VoteRequest(Message):
    API_KEY = 52
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    cluster_id: Annotated[str | None, "0+"] = None
    voter_id: Annotated[Int32, "1+ ignorable"] = -1
    topics: Annotated[list[VoteRequestTopicData], "0+"] = []


class VoteResponsePartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    vote_granted: Annotated[bool, "0+"] = False


class VoteResponseTopicData(Structure):
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[VoteResponsePartitionData], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "1+"] = 0
    host: Annotated[str, "1+"] = ""
    port: Annotated[Uint16, "1+"] = 0


class VoteResponse(Message):
    API_KEY = 52
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    error_code: Annotated[Int16, "0+"] = 0
    topics: Annotated[list[VoteResponseTopicData], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "1+ tag=0"] = []
