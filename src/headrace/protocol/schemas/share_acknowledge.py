"""ShareAcknowledge: API key 79.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import FrozenStructure, Int8, Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class AcknowledgementBatch(Structure):
    first_offset: Annotated[Int64, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    acknowledge_types: Annotated[list[Int8], "0+"] = []


class AcknowledgePartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    acknowledgement_batches: Annotated[list[AcknowledgementBatch], "0+"] = []


class AcknowledgeTopic(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[AcknowledgePartition], "0+"] = []


class ShareAcknowledgeRequest(Message):
    API_KEY = 79
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str | None, "0+"] = None
    member_id: Annotated[str | None, "0+"] = ""
    share_session_epoch: Annotated[Int32, "0+"] = 0
    is_renew_ack: Annotated[bool, "2+"] = False
    topics: Annotated[list[AcknowledgeTopic], "0+"] = []


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class PartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    current_leader: Annotated[LeaderIdAndEpoch, "0+"] = LeaderIdAndEpoch()


class ShareAcknowledgeTopicResponse(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[PartitionData], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "0+"] = 0
    host: Annotated[str, "0+"] = ""
    port: Annotated[Int32, "0+"] = 0
    rack: Annotated[str | None, "0+"] = None


class ShareAcknowledgeResponse(Message):
    API_KEY = 79
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    acquisition_lock_timeout_ms: Annotated[Int32, "2+ ignorable"] = 0
    responses: Annotated[list[ShareAcknowledgeTopicResponse], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "0+"] = []
