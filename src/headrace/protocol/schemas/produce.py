"""Produce: API key 0.

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
)
from headrace.protocol.uuids import ZERO, Uuid


class PartitionProduceData(Structure):
    index: Annotated[Int32, "0+"] = 0
    records: Annotated[Records | None, "0+"] = None


class TopicProduceData(Structure):
    name: Annotated[str, "0-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO
    partition_data: Annotated[list[PartitionProduceData], "0+"] = []


class ProduceRequest(Message):
    API_KEY = 0
    VERSIONS = range(3, 14)
    FLEXIBLE_FROM = 9

    transactional_id: Annotated[str | None, "3+"] = None
    acks: Annotated[Int16, "0+"] = 0
    timeout_ms: Annotated[Int32, "0+"] = 0
    topic_data: Annotated[list[TopicProduceData], "0+"] = []


class BatchIndexAndErrorMessage(Structure):
    batch_index: Annotated[Int32, "8+"] = 0
    batch_index_error_message: Annotated[str | None, "8+"] = None


class LeaderIdAndEpoch(FrozenStructure, frozen=True):
    leader_id: Annotated[Int32, "10+"] = -1
    leader_epoch: Annotated[Int32, "10+"] = -1


class PartitionProduceResponse(Structure):
    index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    base_offset: Annotated[Int64, "0+"] = 0
    log_append_time_ms: Annotated[Int64, "2+ ignorable"] = -1
    log_start_offset: Annotated[Int64, "5+ ignorable"] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], "8+ ignorable"] = []
    error_message: Annotated[str | None, "8+ ignorable"] = None
    current_leader: Annotated[LeaderIdAndEpoch, "10+ tag=0"] = LeaderIdAndEpoch()


class TopicProduceResponse(Structure):
    name: Annotated[str, "0-12 ignorable"] = ""
    topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO
    partition_responses: Annotated[list[PartitionProduceResponse], "0+"] = []


class NodeEndpoint(Structure):
    node_id: Annotated[Int32, "10+"] = 0
    host: Annotated[str, "10+"] = ""
    port: Annotated[Int32, "10+"] = 0
    rack: Annotated[str | None, "10+"] = None


class ProduceResponse(Message):
    API_KEY = 0
    VERSIONS = range(3, 14)
    FLEXIBLE_FROM = 9

    responses: Annotated[list[TopicProduceResponse], "0+"] = []
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    node_endpoints: Annotated[list[NodeEndpoint], "10+ tag=0"] = []
