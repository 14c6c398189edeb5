"""StreamsGroupHeartbeat: API key 88.

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
    Structure,
    Uint16,
)


class KeyValue(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[str, "0+"] = ""


class TopicInfo(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[Int32, "0+"] = 0
    replication_factor: Annotated[Int16, "0+"] = 0
    topic_configs: Annotated[list[KeyValue], "0+"] = []


class CopartitionGroup(Structure):
    source_topics: Annotated[list[Int16], "0+"] = []
    source_topic_regex: Annotated[list[Int16], "0+"] = []
    repartition_source_topics: Annotated[list[Int16], "0+"] = []


class Subtopology(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    source_topics: Annotated[list[str], "0+"] = []
    source_topic_regex: Annotated[list[str], "0+"] = []
    state_changelog_topics: Annotated[list[TopicInfo], "0+"] = []
    repartition_sink_topics: Annotated[list[str], "0+"] = []
    repartition_source_topics: Annotated[list[TopicInfo], "0+"] = []
    copartition_groups: Annotated[list[CopartitionGroup], "0+"] = []


class Topology(FrozenStructure, frozen=True):
    epoch: Annotated[Int32, "0+"] = 0
    subtopologies: Annotated[list[Subtopology], "0+"] = []


class StreamsGroupHeartbeatRequestTaskIds(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class StreamsGroupHeartbeatRequestEndpoint(FrozenStructure, frozen=True):
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class TaskOffset(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partition: Annotated[Int32, "0+"] = 0
    offset: Annotated[Int64, "0+"] = 0


class StreamsGroupHeartbeatRequest(Message):
    API_KEY = 88
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str, "0+"] = ""
    member_id: Annotated[str, "0+"] = ""
    member_epoch: Annotated[Int32, "0+"] = 0
    endpoint_information_epoch: Annotated[Int32, "0+"] = 0
    instance_id: Annotated[str | None, "0+"] = None
    rack_id: Annotated[str | None, "0+"] = None
    rebalance_timeout_ms: Annotated[Int32, "0+"] = -1
    topology: Annotated[Topology | None, "0+"] = None
    active_tasks: Annotated[list[StreamsGroupHeartbeatRequestTaskIds] | None, "0+"] = None
    standby_tasks: Annotated[list[StreamsGroupHeartbeatRequestTaskIds] | None, "0+"] = None
    warmup_tasks: Annotated[list[StreamsGroupHeartbeatRequestTaskIds] | None, "0+"] = None
    process_id: Annotated[str | None, "0+"] = None
    user_endpoint: Annotated[StreamsGroupHeartbeatRequestEndpoint | None, "0+"] = None
    client_tags: Annotated[list[KeyValue] | None, "0+"] = None
    task_offsets: Annotated[list[TaskOffset] | None, "0+"] = None
    task_end_offsets: Annotated[list[TaskOffset] | None, "0+"] = None
    shutdown_application: Annotated[bool, "0+"] = False


class Status(Structure):
    status_code: Annotated[Int8, "0+"] = 0
    status_detail: Annotated[str, "0+"] = ""


class StreamsGroupHeartbeatResponseTaskIds(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class StreamsGroupHeartbeatResponseEndpoint(FrozenStructure, frozen=True):
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class TopicPartition(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class EndpointToPartitions(Structure):
    user_endpoint: Annotated[StreamsGroupHeartbeatResponseEndpoint, "0+"] = (
        StreamsGroupHeartbeatResponseEndpoint()
    )
    active_partitions: Annotated[list[TopicPartition], "0+"] = []
    standby_partitions: Annotated[list[TopicPartition], "0+"] = []


class StreamsGroupHeartbeatResponse(Message):
    API_KEY = 88
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    member_id: Annotated[str, "0+"] = ""
    member_epoch: Annotated[Int32, "0+"] = 0
    heartbeat_interval_ms: Annotated[Int32, "0+"] = 0
    acceptable_recovery_lag: Annotated[Int32, "0+"] = 0
    task_offset_interval_ms: Annotated[Int32, "0+"] = 0
    status: Annotated[list[Status] | None, "0+"] = []
    active_tasks: Annotated[list[StreamsGroupHeartbeatResponseTaskIds] | None, "0+"] = None
    standby_tasks: Annotated[list[StreamsGroupHeartbeatResponseTaskIds] | None, "0+"] = None
    warmup_tasks: Annotated[list[StreamsGroupHeartbeatResponseTaskIds] | None, "0+"] = None
    endpoint_information_epoch: Annotated[Int32, "0+"] = 0
    partitions_by_user_endpoint: Annotated[list[EndpointToPartitions] | None, "0+"] = None
