"""ShareFetch: API key 78.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import (
    FrozenStructure,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    Structure,
)
from headrace.protocol.uuids import ZERO, Uuid


class AcknowledgementBatch(Structure):
    first_offset: Annotated[Int64, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    acknowledge_types: Annotated[list[Int8], "0+"] = []


class FetchPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    acknowledgement_batches: Annotated[list[AcknowledgementBatch], "0+"] = []


class FetchTopic(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[FetchPartition], "0+"] = []


class ForgottenTopic(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []


class ShareFetchRequest(Message):
    API_KEY = 78
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str | None, "0+"] = None
    member_id: Annotated[str | None, "0+"] = ""
    share_session_epoch: Annotated[Int32, "0+"] = 0
    max_wait_ms: Annotated[Int32, "0+"] = 0
    min_bytes: Annotated[Int32, "0+"] = 0
    max_bytes: Annotated[Int32, "0+"] = 2147483647
    max_records: Annotated[Int32, "1+"] = 0
    batch_size: Annotated[Int32, "1+"] = 0
    share_acquire_mode: Annotated[Int8, "2+ ignorable"] = 0
    is_renew_ack: Annotated[bool, "2+"] = False
    topics: Annotated[list[FetchTopic], "0+"] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], "0+"] = []


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class AcquiredRecords(Structure):
    first_offset: Annotated[Int64, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    delivery_count: Annotated[Int16, "0+"] = 0


class PartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    acknowledge_error_code: Annotated[Int16, "0+"] = 0
    acknowledge_error_message: Annotated[str | None, "0+"] = None
    current_leader: Annotated[LeaderIdAndEpoch, "0+"] = LeaderIdAndEpoch()
    records: Annotated[Records | None, "0+ nullable=0"] = None
    acquired_records: Annotated[list[AcquiredRecords], "0+"] = []


class ShareFetchableTopicResponse(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[PartitionData], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "0+"] = 0
    host: Annotated[str, "0+"] = ""
    port: Annotated[Int32, "0+"] = 0
    rack: Annotated[str | None, "0+"] = None


class ShareFetchResponse(Message):
    API_KEY = 78
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    acquisition_lock_timeout_ms: Annotated[Int32, "1+"] = 0
    responses: Annotated[list[ShareFetchableTopicResponse], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "0+"] = []
