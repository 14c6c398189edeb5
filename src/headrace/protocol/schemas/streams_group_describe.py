"""StreamsGroupDescribe: API key 89.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import (
    FrozenStructure,
    Int16,
    Int32,
    Int64,
    Message,
    Structure,
    Uint16,
)


class StreamsGroupDescribeRequest(Message):
    API_KEY = 89
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_ids: Annotated[list[str], "0+"] = []
    include_authorized_operations: Annotated[bool, "0+"] = False


class KeyValue(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[str, "0+"] = ""


class TopicInfo(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[Int32, "0+"] = 0
    replication_factor: Annotated[Int16, "0+"] = 0
    topic_configs: Annotated[list[KeyValue], "0+"] = []


class Subtopology(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    source_topics: Annotated[list[str], "0+"] = []
    repartition_sink_topics: Annotated[list[str], "0+"] = []
    state_changelog_topics: Annotated[list[TopicInfo], "0+"] = []
    repartition_source_topics: Annotated[list[TopicInfo], "0+"] = []


class Topology(FrozenStructure, frozen=True):
    epoch: Annotated[Int32, "0+"] = 0
    subtopologies: Annotated[list[Subtopology] | None, "0+"] = None


class Endpoint(FrozenStructure, frozen=True):
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class TaskOffset(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partition: Annotated[Int32, "0+"] = 0
    offset: Annotated[Int64, "0+"] = 0


class TaskIds(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class Assignment(FrozenStructure, frozen=True):
    active_tasks: Annotated[list[TaskIds], "0+"] = []
    standby_tasks: Annotated[list[TaskIds], "0+"] = []
    warmup_tasks: Annotated[list[TaskIds], "0+"] = []


class Member(Structure):
    member_id: Annotated[str, "0+"] = ""
    member_epoch: Annotated[Int32, "0+"] = 0
    instance_id: Annotated[str | None, "0+"] = None
    rack_id: Annotated[str | None, "0+"] = None
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    topology_epoch: Annotated[Int32, "0+"] = 0
    process_id: Annotated[str, "0+"] = ""
    user_endpoint: Annotated[Endpoint | None, "0+"] = None
    client_tags: Annotated[list[KeyValue], "0+"] = []
    task_offsets: Annotated[list[TaskOffset], "0+"] = []
    task_end_offsets: Annotated[list[TaskOffset], "0+"] = []
    assignment: Annotated[Assignment, "0+"] = Assignment()
    target_assignment: Annotated[Assignment, "0+"] = Assignment()
    is_classic: Annotated[bool, "0+"] = False


class DescribedGroup(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    group_id: Annotated[str, "0+"] = ""
    group_state: Annotated[str, "0+"] = ""
    group_epoch: Annotated[Int32, "0+"] = 0
    assignment_epoch: Annotated[Int32, "0+"] = 0
    topology: Annotated[Topology | None, "0+"] = None
    members: Annotated[list[Member], "0+"] = []
    authorized_operations: Annotated[Int32, "0+"] = -2147483648


class StreamsGroupDescribeResponse(Message):
    API_KEY = 89
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    groups: Annotated[list[DescribedGroup], "0+"] = []
