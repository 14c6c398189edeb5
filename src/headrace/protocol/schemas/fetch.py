"""Fetch: API key 1.

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


class ReplicaState(FrozenStructure, frozen=True):
    replica_id: Annotated[Int32, "15+"] = -1
    replica_epoch: Annotated[Int64, "15+"] = -1


class FetchPartition(Structure):
    partition: Annotated[Int32, "0+"] = 0
    current_leader_epoch: Annotated[Int32, "9+ ignorable"] = -1
    fetch_offset: Annotated[Int64, "0+"] = 0
    last_fetched_epoch: Annotated[Int32, "12+"] = -1
    log_start_offset: Annotated[Int64, "5+ ignorable"] = -1
    partition_max_bytes: Annotated[Int32, "0+"] = 0
    replica_directory_id: Annotated[Uuid, "17+ tag=0 ignorable"] = ZERO
    high_watermark: Annotated[Int64, "18+ tag=1 ignorable"] = 9223372036854775807


class FetchTopic(Structure):
    topic: Annotated[str, "0-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO
    partitions: Annotated[list[FetchPartition], "0+"] = []


class ForgottenTopic(Structure):
    topic: Annotated[str, "7-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO
    partitions: Annotated[list[Int32], "7+"] = []


class FetchRequest(Message):
    API_KEY = 1
    VERSIONS = range(4, 19)
    FLEXIBLE_FROM = 12

    cluster_id: Annotated[str | None, "12+ tag=0 ignorable"] = None
    replica_id: Annotated[Int32, "0-14"] = -1
    replica_state: Annotated[ReplicaState, "15+ tag=1"] = ReplicaState()
    max_wait_ms: Annotated[Int32, "0+"] = 0
    min_bytes: Annotated[Int32, "0+"] = 0
    max_bytes: Annotated[Int32, "3+ ignorable"] = 2147483647
    isolation_level: Annotated[Int8, "4+ ignorable"] = 0
    session_id: Annotated[Int32, "7+ ignorable"] = 0
    session_epoch: Annotated[Int32, "7+ ignorable"] = -1
    topics: Annotated[list[FetchTopic], "0+"] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], "7+"] = []
    rack_id: Annotated[str, "11+ ignorable"] = ""


class EpochEndOffset(FrozenStructure, frozen=True):
    epoch: Annotated[Int32, "12+"] = -1
    end_offset: Annotated[Int64, "12+"] = -1


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: Annotated[Int32, "12+"] = -1
    leader_epoch: Annotated[Int32, "12+"] = -1


class SnapshotId(FrozenStructure, frozen=True):
    end_offset: Annotated[Int64, "0+"] = -1
    epoch: Annotated[Int32, "0+"] = -1


class AbortedTransaction(Structure):
    producer_id: Annotated[Int64, "4+"] = 0
    first_offset: Annotated[Int64, "4+"] = 0


class PartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    high_watermark: Annotated[Int64, "0+"] = 0
    last_stable_offset: Annotated[Int64, "4+ ignorable"] = -1
    log_start_offset: Annotated[Int64, "5+ ignorable"] = -1
    diverging_epoch: Annotated[EpochEndOffset, "12+ tag=0"] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, "12+ tag=1"] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, "12+ tag=2"] = SnapshotId()
    aborted_transactions: Annotated[list[AbortedTransaction] | None, "4+ ignorable"] = []
    preferred_read_replica: Annotated[Int32, "11+"] = -1
    records: Annotated[Records | None, "0+"] = None


class FetchableTopicResponse(Structure):
    topic: Annotated[str, "0-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO
    partitions: Annotated[list[PartitionData], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "16+"] = 0
    host: Annotated[str, "16+"] = ""
    port: Annotated[Int32, "16+"] = 0
    rack: Annotated[str | None, "16+"] = None


class FetchResponse(Message):
    API_KEY = 1
    VERSIONS = range(4, 19)
    FLEXIBLE_FROM = 12

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "7+ ignorable"] = 0
    session_id: Annotated[Int32, "7+"] = 0
    responses: Annotated[list[FetchableTopicResponse], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "16+ tag=0"] = []
