"""FetchSnapshot: API key 59.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import (
    FrozenStructure,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    Structure,
    Uint16,
)
from headrace.protocol.uuids import ZERO, Uuid


class FetchSnapshotRequestSnapshotId(FrozenStructure, frozen=True):
    end_offset: Annotated[Int64, "0+"] = 0
    epoch: Annotated[Int32, "0+"] = 0


class FetchSnapshotRequestPartitionSnapshot(Structure):
    partition: Annotated[Int32, "0+"] = 0
    current_leader_epoch: Annotated[Int32, "0+"] = 0
    snapshot_id: Annotated[FetchSnapshotRequestSnapshotId, "0+"] = FetchSnapshotRequestSnapshotId()
    position: Annotated[Int64, "0+"] = 0
    replica_directory_id: Annotated[Uuid, "1+ tag=0 ignorable"] = ZERO


class FetchSnapshotRequestTopicSnapshot(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[FetchSnapshotRequestPartitionSnapshot], "0+"] = []


class FetchSnapshotRequest(Message):
    API_KEY = 59
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    cluster_id: Annotated[str | None, "0+ tag=0"] = None
    replica_id: Annotated[Int32, "0+"] = -1
    max_bytes: Annotated[Int32, "0+"] = 2147483647
    topics: Annotated[list[FetchSnapshotRequestTopicSnapshot], "0+"] = []


class FetchSnapshotResponseSnapshotId(FrozenStructure, frozen=True):
    end_offset: Annotated[Int64, "0+"] = 0
    epoch: Annotated[Int32, "0+"] = 0


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0


class FetchSnapshotResponsePartitionSnapshot(Structure):
    index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    snapshot_id: Annotated[FetchSnapshotResponseSnapshotId, "0+"] = (
        FetchSnapshotResponseSnapshotId()
    )
    current_leader: Annotated[LeaderIdAndEpoch, "0+ tag=0"] = LeaderIdAndEpoch()
    size: Annotated[Int64, "0+"] = 0
    position: Annotated[Int64, "0+"] = 0
    unaligned_records: Annotated[Records, "0+"] = b""


class FetchSnapshotResponseTopicSnapshot(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[FetchSnapshotResponsePartitionSnapshot], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "1+"] = 0
    host: Annotated[str, "1+"] = ""
    port: Annotated[Uint16, "1+"] = 0


class FetchSnapshotResponse(Message):
    API_KEY = 59
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    topics: Annotated[list[FetchSnapshotResponseTopicSnapshot], "0+"] = []
    node_endpoints: Annotated[list[NodeEndpoint], "1+ tag=0"] = []
