"""The keys and values of the records of `__consumer_offsets`, by type.

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
from headrace.protocol.uuids import ZERO, Uuid


class LegacyOffsetCommitKey(Message):
    API_KEY = 0
    VERSIONS = range(1)

    group: Annotated[str, "0"] = ""
    topic: Annotated[str, "0"] = ""
    partition: Annotated[Int32, "0"] = 0


class LegacyOffsetCommitValue(Message):
    API_KEY = 0
    VERSIONS = range(1)

    offset: Annotated[Int64, "0"] = 0
    metadata: Annotated[str, "0"] = ""
    commit_timestamp: Annotated[Int64, "0"] = 0


class OffsetCommitKey(Message):
    API_KEY = 1
    VERSIONS = range(1)

    group: Annotated[str, "0"] = ""
    topic: Annotated[str, "0"] = ""
    partition: Annotated[Int32, "0"] = 0


class OffsetCommitValue(Message):
    API_KEY = 1
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    offset: Annotated[Int64, "0+"] = 0
    leader_epoch: Annotated[Int32, "3+ ignorable"] = -1
    metadata: Annotated[str, "0+"] = ""
    commit_timestamp: Annotated[Int64, "0+"] = 0
    expire_timestamp: Annotated[Int64, "1 ignorable"] = -1
    topic_id: Annotated[Uuid, "4+ tag=0 ignorable"] = ZERO


class GroupMetadataKey(Message):
    API_KEY = 2
    VERSIONS = range(1)

    group: Annotated[str, "0"] = ""


class MemberMetadata(Structure):
    member_id: Annotated[str, "0+"] = ""
    group_instance_id: Annotated[str | None, "3+ ignorable"] = None
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    rebalance_timeout: Annotated[Int32, "1+ ignorable"] = -1
    session_timeout: Annotated[Int32, "0+"] = 0
    subscription: Annotated[bytes, "0+"] = b""
    assignment: Annotated[bytes, "0+"] = b""


class GroupMetadataValue(Message):
    API_KEY = 2
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    protocol_type: Annotated[str, "0+"] = ""
    generation: Annotated[Int32, "0+"] = 0
    protocol: Annotated[str | None, "0+"] = ""
    leader: Annotated[str | None, "0+"] = ""
    current_state_timestamp: Annotated[Int64, "2+ ignorable"] = -1
    members: Annotated[list[MemberMetadata], "0+"] = []


class ConsumerGroupMetadataKey(Message):
    API_KEY = 3
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class ConsumerGroupMetadataValue(Message):
    API_KEY = 3
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: Annotated[Int32, "0+"] = 0
    metadata_hash: Annotated[Int64, "0+ tag=0"] = 0


class ConsumerGroupPartitionMetadataKey(Message):
    API_KEY = 4
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class PartitionMetadata(Structure):
    partition: Annotated[Int32, "0+"] = 0
    racks: Annotated[list[str], "0+"] = []


class TopicMetadata(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    topic_name: Annotated[str, "0+"] = ""
    num_partitions: Annotated[Int32, "0+"] = 0
    partition_metadata: Annotated[list[PartitionMetadata], "0+"] = []


class ConsumerGroupPartitionMetadataValue(Message):
    API_KEY = 4
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: Annotated[list[TopicMetadata], "0+"] = []


class ConsumerGroupMemberMetadataKey(Message):
    API_KEY = 5
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class ClassicProtocol(Structure):
    name: Annotated[str, "0+"] = ""
    metadata: Annotated[bytes, "0+"] = b""


class ClassicMemberMetadata(FrozenStructure, frozen=True):
    session_timeout_ms: Annotated[Int32, "0+"] = 0
    supported_protocols: Annotated[list[ClassicProtocol], "0+"] = []


class ConsumerGroupMemberMetadataValue(Message):
    API_KEY = 5
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    instance_id: Annotated[str | None, "0+"] = ""
    rack_id: Annotated[str | None, "0+"] = ""
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    subscribed_topic_names: Annotated[list[str], "0+"] = []
    subscribed_topic_regex: Annotated[str | None, "0+"] = ""
    rebalance_timeout_ms: Annotated[Int32, "0+"] = -1
    server_assignor: Annotated[str | None, "0+"] = ""
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, "0+ tag=0"] = (
        ClassicMemberMetadata()
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 6
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 6
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    assignment_epoch: Annotated[Int32, "0+"] = 0
    assignment_timestamp: Annotated[Int64, "0+ tag=0 ignorable"] = 0


class ConsumerGroupTargetAssignmentMemberKey(Message):
    API_KEY = 7
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class ConsumerGroupTargetAssignmentMemberValueTopicPartition(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []


class ConsumerGroupTargetAssignmentMemberValue(Message):
    API_KEY = 7
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_partitions: Annotated[
        list[ConsumerGroupTargetAssignmentMemberValueTopicPartition], "0+"
    ] = []


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 8
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []
    assignment_epochs: Annotated[list[Int32] | None, "0+ tag=0"] = []


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 8
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    member_epoch: Annotated[Int32, "0+"] = 0
    previous_member_epoch: Annotated[Int32, "0+"] = 0
    state: Annotated[Int8, "0+"] = 0
    assigned_partitions: Annotated[
        list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions], "0+"
    ] = []
    partitions_pending_revocation: Annotated[
        list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions], "0+"
    ] = []


class ShareGroupMemberMetadataKey(Message):
    API_KEY = 10
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class ShareGroupMemberMetadataValue(Message):
    API_KEY = 10
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    rack_id: Annotated[str | None, "0+"] = ""
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    subscribed_topic_names: Annotated[list[str], "0+"] = []


class ShareGroupMetadataKey(Message):
    API_KEY = 11
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class ShareGroupMetadataValue(Message):
    API_KEY = 11
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: Annotated[Int32, "0+"] = 0
    metadata_hash: Annotated[Int64, "0+"] = 0


class ShareGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 12
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class ShareGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 12
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    assignment_epoch: Annotated[Int32, "0+"] = 0
    assignment_timestamp: Annotated[Int64, "0+ tag=0 ignorable"] = 0


class ShareGroupTargetAssignmentMemberKey(Message):
    API_KEY = 13
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class ShareGroupTargetAssignmentMemberValueTopicPartition(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []


class ShareGroupTargetAssignmentMemberValue(Message):
    API_KEY = 13
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_partitions: Annotated[
        list[ShareGroupTargetAssignmentMemberValueTopicPartition], "0+"
    ] = []


class ShareGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 14
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class ShareGroupCurrentMemberAssignmentValueTopicPartitions(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []


class ShareGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 14
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    member_epoch: Annotated[Int32, "0+"] = 0
    previous_member_epoch: Annotated[Int32, "0+"] = 0
    state: Annotated[Int8, "0+"] = 0
    assigned_partitions: Annotated[
        list[ShareGroupCurrentMemberAssignmentValueTopicPartitions], "0+"
    ] = []


class ShareGroupStatePartitionMetadataKey(Message):
    API_KEY = 15
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class TopicPartitionsInfo(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class ShareGroupStatePartitionMetadataValueTopicInfo(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    topic_name: Annotated[str, "0+"] = ""


class ShareGroupStatePartitionMetadataValue(Message):
    API_KEY = 15
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    initializing_topics: Annotated[list[TopicPartitionsInfo], "0+"] = []
    initialized_topics: Annotated[list[TopicPartitionsInfo], "0+"] = []
    deleting_topics: Annotated[list[ShareGroupStatePartitionMetadataValueTopicInfo], "0+"] = []


class ConsumerGroupRegularExpressionKey(Message):
    API_KEY = 16
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    regular_expression: Annotated[str, "0"] = ""


class ConsumerGroupRegularExpressionValue(Message):
    API_KEY = 16
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: Annotated[list[str], "0+"] = []
    version: Annotated[Int64, "0+"] = 0
    timestamp: Annotated[Int64, "0+"] = 0


class StreamsGroupMetadataKey(Message):
    API_KEY = 17
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class LastAssignmentConfig(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[str, "0+"] = ""


class StreamsGroupMetadataValue(Message):
    API_KEY = 17
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: Annotated[Int32, "0+"] = 0
    metadata_hash: Annotated[Int64, "0+"] = 0
    validated_topology_epoch: Annotated[Int32, "0+ tag=0"] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, "0+ tag=1"] = []


class StreamsGroupMemberMetadataKey(Message):
    API_KEY = 19
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class Endpoint(FrozenStructure, frozen=True):
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class KeyValue(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[str, "0+"] = ""


class StreamsGroupMemberMetadataValue(Message):
    API_KEY = 19
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    instance_id: Annotated[str | None, "0+"] = ""
    rack_id: Annotated[str | None, "0+"] = ""
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    rebalance_timeout_ms: Annotated[Int32, "0+"] = -1
    topology_epoch: Annotated[Int32, "0+"] = 0
    process_id: Annotated[str, "0+"] = ""
    user_endpoint: Annotated[Endpoint | None, "0+"] = None
    client_tags: Annotated[list[KeyValue], "0+"] = []


class StreamsGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 20
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class StreamsGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 20
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    assignment_epoch: Annotated[Int32, "0+"] = 0
    assignment_timestamp: Annotated[Int64, "0+ tag=0 ignorable"] = 0


class StreamsGroupTargetAssignmentMemberKey(Message):
    API_KEY = 21
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class StreamsGroupTargetAssignmentMemberValueTaskIds(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class StreamsGroupTargetAssignmentMemberValue(Message):
    API_KEY = 21
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    active_tasks: Annotated[list[StreamsGroupTargetAssignmentMemberValueTaskIds], "0+"] = []
    standby_tasks: Annotated[list[StreamsGroupTargetAssignmentMemberValueTaskIds], "0+"] = []
    warmup_tasks: Annotated[list[StreamsGroupTargetAssignmentMemberValueTaskIds], "0+"] = []


class StreamsGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 22
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    member_id: Annotated[str, "0"] = ""


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []
    assignment_epochs: Annotated[list[Int32] | None, "0+ tag=0"] = []


class StreamsGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 22
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    member_epoch: Annotated[Int32, "0+"] = 0
    previous_member_epoch: Annotated[Int32, "0+"] = 0
    state: Annotated[Int8, "0+"] = 0
    active_tasks: Annotated[list[StreamsGroupCurrentMemberAssignmentValueTaskIds], "0+"] = []
    standby_tasks: Annotated[list[StreamsGroupCurrentMemberAssignmentValueTaskIds], "0+"] = []
    warmup_tasks: Annotated[list[StreamsGroupCurrentMemberAssignmentValueTaskIds], "0+"] = []
    active_tasks_pending_revocation: Annotated[
        list[StreamsGroupCurrentMemberAssignmentValueTaskIds], "0+"
    ] = []
    standby_tasks_pending_revocation: Annotated[
        list[StreamsGroupCurrentMemberAssignmentValueTaskIds], "0+"
    ] = []
    warmup_tasks_pending_revocation: Annotated[
        list[StreamsGroupCurrentMemberAssignmentValueTaskIds], "0+"
    ] = []


class StreamsGroupTopologyKey(Message):
    API_KEY = 23
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""


class TopicConfig(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[str, "0+"] = ""


class StreamsGroupTopologyValueTopicInfo(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[Int32, "0+"] = 0
    replication_factor: Annotated[Int16, "0+"] = 0
    topic_configs: Annotated[list[TopicConfig], "0+"] = []


class CopartitionGroup(Structure):
    source_topics: Annotated[list[Int16], "0+"] = []
    source_topic_regex: Annotated[list[Int16], "0+"] = []
    repartition_source_topics: Annotated[list[Int16], "0+"] = []


class Subtopology(Structure):
    subtopology_id: Annotated[str, "0+"] = ""
    source_topics: Annotated[list[str], "0+"] = []
    source_topic_regex: Annotated[list[str], "0+"] = []
    state_changelog_topics: Annotated[list[StreamsGroupTopologyValueTopicInfo], "0+"] = []
    repartition_sink_topics: Annotated[list[str], "0+"] = []
    repartition_source_topics: Annotated[list[StreamsGroupTopologyValueTopicInfo], "0+"] = []
    copartition_groups: Annotated[list[CopartitionGroup], "0+"] = []


class StreamsGroupTopologyValue(Message):
    API_KEY = 23
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: Annotated[Int32, "0+"] = 0
    subtopologies: Annotated[list[Subtopology], "0+"] = []
