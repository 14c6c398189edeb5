"""The keys and values of the records of `__consumer_offsets`, by type.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class LegacyOffsetCommitKey(Message):
    API_KEY = 0
    VERSIONS = range(1)

    group: str = ""
    topic: str = ""
    partition: int = 0

    FIELDS = """
        group      string  0
        topic      string  0
        partition  int32   0
    """


class LegacyOffsetCommitValue(Message):
    API_KEY = 0
    VERSIONS = range(1)

    offset: int = 0
    metadata: str = ""
    commit_timestamp: int = 0

    FIELDS = """
        offset            int64   0
        metadata          string  0
        commit_timestamp  int64   0
    """


class OffsetCommitKey(Message):
    API_KEY = 1
    VERSIONS = range(1)

    group: str = ""
    topic: str = ""
    partition: int = 0

    FIELDS = """
        group      string  0
        topic      string  0
        partition  int32   0
    """


class OffsetCommitValue(Message):
    API_KEY = 1
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: Uuid = ZERO

    FIELDS = """
        offset            int64   0+
        leader_epoch      int32   3+  ignorable
        metadata          string  0+
        commit_timestamp  int64   0+
        expire_timestamp  int64   1   ignorable
        topic_id          uuid    4+  tag=0 ignorable
    """


class GroupMetadataKey(Message):
    API_KEY = 2
    VERSIONS = range(1)

    group: str = ""

    FIELDS = """
        group  string  0
    """


class MemberMetadata(Structure):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""

    FIELDS = """
        member_id          string  0+
        group_instance_id  string  3+  nullable ignorable
        client_id          string  0+
        client_host        string  0+
        rebalance_timeout  int32   1+  ignorable
        session_timeout    int32   0+
        subscription       bytes   0+
        assignment         bytes   0+
    """


class GroupMetadataValue(Message):
    API_KEY = 2
    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = []

    FIELDS = """
        protocol_type            string            0+
        generation               int32             0+
        protocol                 string            0+  nullable
        leader                   string            0+  nullable
        current_state_timestamp  int64             2+  ignorable
        members                  []MemberMetadata  0+
    """


class ConsumerGroupMetadataKey(Message):
    API_KEY = 3
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class ConsumerGroupMetadataValue(Message):
    API_KEY = 3
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: int = 0
    metadata_hash: int = 0

    FIELDS = """
        epoch          int32  0+
        metadata_hash  int64  0+  tag=0
    """


class ConsumerGroupPartitionMetadataKey(Message):
    API_KEY = 4
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class PartitionMetadata(Structure):
    partition: int = 0
    racks: list[str] = []

    FIELDS = """
        partition  int32     0+
        racks      []string  0+
    """


class TopicMetadata(Structure):
    topic_id: Uuid = ZERO
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionMetadata] = []

    FIELDS = """
        topic_id            uuid                 0+
        topic_name          string               0+
        num_partitions      int32                0+
        partition_metadata  []PartitionMetadata  0+
    """


class ConsumerGroupPartitionMetadataValue(Message):
    API_KEY = 4
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: list[TopicMetadata] = []

    FIELDS = """
        topics  []TopicMetadata  0+
    """


class ConsumerGroupMemberMetadataKey(Message):
    API_KEY = 5
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class ClassicProtocol(Structure):
    name: str = ""
    metadata: bytes = b""

    FIELDS = """
        name      string  0+
        metadata  bytes   0+
    """


class ClassicMemberMetadata(FrozenStructure, frozen=True):
    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = []

    FIELDS = """
        session_timeout_ms   int32              0+
        supported_protocols  []ClassicProtocol  0+
    """


class ConsumerGroupMemberMetadataValue(Message):
    API_KEY = 5
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()

    FIELDS = """
        instance_id              string                 0+  nullable
        rack_id                  string                 0+  nullable
        client_id                string                 0+
        client_host              string                 0+
        subscribed_topic_names   []string               0+
        subscribed_topic_regex   string                 0+  nullable
        rebalance_timeout_ms     int32                  0+
        server_assignor          string                 0+  nullable
        classic_member_metadata  ClassicMemberMetadata  0+  nullable tag=0
    """


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 6
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 6
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    assignment_epoch: int = 0
    assignment_timestamp: int = 0

    FIELDS = """
        assignment_epoch      int32  0+
        assignment_timestamp  int64  0+  tag=0 ignorable
    """


class ConsumerGroupTargetAssignmentMemberKey(Message):
    API_KEY = 7
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class ConsumerGroupTargetAssignmentMemberValueTopicPartition(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class ConsumerGroupTargetAssignmentMemberValue(Message):
    API_KEY = 7
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValueTopicPartition] = []

    FIELDS = """
        topic_partitions  []ConsumerGroupTargetAssignmentMemberValueTopicPartition  0+
    """


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 8
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []
    assignment_epochs: list[int] | None = []

    FIELDS = """
        topic_id           uuid     0+
        partitions         []int32  0+
        assignment_epochs  []int32  0+  nullable tag=0
    """


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 8
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = []
    partitions_pending_revocation: list[
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions
    ] = []

    FIELDS = """
        member_epoch                   int32                                                       0+
        previous_member_epoch          int32                                                       0+
        state                          int8                                                        0+
        assigned_partitions            []ConsumerGroupCurrentMemberAssignmentValueTopicPartitions  0+
        partitions_pending_revocation  []ConsumerGroupCurrentMemberAssignmentValueTopicPartitions  0+
    """


class ShareGroupMemberMetadataKey(Message):
    API_KEY = 10
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class ShareGroupMemberMetadataValue(Message):
    API_KEY = 10
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []

    FIELDS = """
        rack_id                 string    0+  nullable
        client_id               string    0+
        client_host             string    0+
        subscribed_topic_names  []string  0+
    """


class ShareGroupMetadataKey(Message):
    API_KEY = 11
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class ShareGroupMetadataValue(Message):
    API_KEY = 11
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: int = 0
    metadata_hash: int = 0

    FIELDS = """
        epoch          int32  0+
        metadata_hash  int64  0+
    """


class ShareGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 12
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class ShareGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 12
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    assignment_epoch: int = 0
    assignment_timestamp: int = 0

    FIELDS = """
        assignment_epoch      int32  0+
        assignment_timestamp  int64  0+  tag=0 ignorable
    """


class ShareGroupTargetAssignmentMemberKey(Message):
    API_KEY = 13
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class ShareGroupTargetAssignmentMemberValueTopicPartition(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class ShareGroupTargetAssignmentMemberValue(Message):
    API_KEY = 13
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topic_partitions: list[ShareGroupTargetAssignmentMemberValueTopicPartition] = []

    FIELDS = """
        topic_partitions  []ShareGroupTargetAssignmentMemberValueTopicPartition  0+
    """


class ShareGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 14
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class ShareGroupCurrentMemberAssignmentValueTopicPartitions(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class ShareGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 14
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValueTopicPartitions] = []

    FIELDS = """
        member_epoch           int32                                                    0+
        previous_member_epoch  int32                                                    0+
        state                  int8                                                     0+
        assigned_partitions    []ShareGroupCurrentMemberAssignmentValueTopicPartitions  0+
    """


class ShareGroupStatePartitionMetadataKey(Message):
    API_KEY = 15
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class TopicPartitionsInfo(Structure):
    topic_id: Uuid = ZERO
    topic_name: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        topic_name  string   0+
        partitions  []int32  0+
    """


class ShareGroupStatePartitionMetadataValueTopicInfo(Structure):
    topic_id: Uuid = ZERO
    topic_name: str = ""

    FIELDS = """
        topic_id    uuid    0+
        topic_name  string  0+
    """


class ShareGroupStatePartitionMetadataValue(Message):
    API_KEY = 15
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[ShareGroupStatePartitionMetadataValueTopicInfo] = []

    FIELDS = """
        initializing_topics  []TopicPartitionsInfo                             0+
        initialized_topics   []TopicPartitionsInfo                             0+
        deleting_topics      []ShareGroupStatePartitionMetadataValueTopicInfo  0+
    """


class ConsumerGroupRegularExpressionKey(Message):
    API_KEY = 16
    VERSIONS = range(1)

    group_id: str = ""
    regular_expression: str = ""

    FIELDS = """
        group_id            string  0
        regular_expression  string  0
    """


class ConsumerGroupRegularExpressionValue(Message):
    API_KEY = 16
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: list[str] = []
    version: int = 0
    timestamp: int = 0

    FIELDS = """
        topics     []string  0+
        version    int64     0+
        timestamp  int64     0+
    """


class StreamsGroupMetadataKey(Message):
    API_KEY = 17
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class LastAssignmentConfig(Structure):
    key: str = ""
    value: str = ""

    FIELDS = """
        key    string  0+
        value  string  0+
    """


class StreamsGroupMetadataValue(Message):
    API_KEY = 17
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: list[LastAssignmentConfig] | None = []

    FIELDS = """
        epoch                     int32                   0+
        metadata_hash             int64                   0+
        validated_topology_epoch  int32                   0+  tag=0
        last_assignment_configs   []LastAssignmentConfig  0+  nullable tag=1
    """


class StreamsGroupMemberMetadataKey(Message):
    API_KEY = 19
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class Endpoint(FrozenStructure, frozen=True):
    host: str = ""
    port: int = 0

    FIELDS = """
        host  string  0+
        port  uint16  0+
    """


class KeyValue(Structure):
    key: str = ""
    value: str = ""

    FIELDS = """
        key    string  0+
        value  string  0+
    """


class StreamsGroupMemberMetadataValue(Message):
    API_KEY = 19
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []

    FIELDS = """
        instance_id           string      0+  nullable
        rack_id               string      0+  nullable
        client_id             string      0+
        client_host           string      0+
        rebalance_timeout_ms  int32       0+
        topology_epoch        int32       0+
        process_id            string      0+
        user_endpoint         Endpoint    0+  nullable
        client_tags           []KeyValue  0+
    """


class StreamsGroupTargetAssignmentMetadataKey(Message):
    API_KEY = 20
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class StreamsGroupTargetAssignmentMetadataValue(Message):
    API_KEY = 20
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    assignment_epoch: int = 0
    assignment_timestamp: int = 0

    FIELDS = """
        assignment_epoch      int32  0+
        assignment_timestamp  int64  0+  tag=0 ignorable
    """


class StreamsGroupTargetAssignmentMemberKey(Message):
    API_KEY = 21
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class StreamsGroupTargetAssignmentMemberValueTaskIds(Structure):
    subtopology_id: str = ""
    partitions: list[int] = []

    FIELDS = """
        subtopology_id  string   0+
        partitions      []int32  0+
    """


class StreamsGroupTargetAssignmentMemberValue(Message):
    API_KEY = 21
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = []
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = []
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = []

    FIELDS = """
        active_tasks   []StreamsGroupTargetAssignmentMemberValueTaskIds  0+
        standby_tasks  []StreamsGroupTargetAssignmentMemberValueTaskIds  0+
        warmup_tasks   []StreamsGroupTargetAssignmentMemberValueTaskIds  0+
    """


class StreamsGroupCurrentMemberAssignmentKey(Message):
    API_KEY = 22
    VERSIONS = range(1)

    group_id: str = ""
    member_id: str = ""

    FIELDS = """
        group_id   string  0
        member_id  string  0
    """


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Structure):
    subtopology_id: str = ""
    partitions: list[int] = []
    assignment_epochs: list[int] | None = []

    FIELDS = """
        subtopology_id     string   0+
        partitions         []int32  0+
        assignment_epochs  []int32  0+  nullable tag=0
    """


class StreamsGroupCurrentMemberAssignmentValue(Message):
    API_KEY = 22
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []

    FIELDS = """
        member_epoch                      int32                                              0+
        previous_member_epoch             int32                                              0+
        state                             int8                                               0+
        active_tasks                      []StreamsGroupCurrentMemberAssignmentValueTaskIds  0+
        standby_tasks                     []StreamsGroupCurrentMemberAssignmentValueTaskIds  0+
        warmup_tasks                      []StreamsGroupCurrentMemberAssignmentValueTaskIds  0+
        active_tasks_pending_revocation   []StreamsGroupCurrentMemberAssignmentValueTaskIds  0+
        standby_tasks_pending_revocation  []StreamsGroupCurrentMemberAssignmentValueTaskIds  0+
        warmup_tasks_pending_revocation   []StreamsGroupCurrentMemberAssignmentValueTaskIds  0+
    """


class StreamsGroupTopologyKey(Message):
    API_KEY = 23
    VERSIONS = range(1)

    group_id: str = ""

    FIELDS = """
        group_id  string  0
    """


class TopicConfig(Structure):
    key: str = ""
    value: str = ""

    FIELDS = """
        key    string  0+
        value  string  0+
    """


class StreamsGroupTopologyValueTopicInfo(Structure):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[TopicConfig] = []

    FIELDS = """
        name                string         0+
        partitions          int32          0+
        replication_factor  int16          0+
        topic_configs       []TopicConfig  0+
    """


class CopartitionGroup(Structure):
    source_topics: list[int] = []
    source_topic_regex: list[int] = []
    repartition_source_topics: list[int] = []

    FIELDS = """
        source_topics              []int16  0+
        source_topic_regex         []int16  0+
        repartition_source_topics  []int16  0+
    """


class Subtopology(Structure):
    subtopology_id: str = ""
    source_topics: list[str] = []
    source_topic_regex: list[str] = []
    state_changelog_topics: list[StreamsGroupTopologyValueTopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[StreamsGroupTopologyValueTopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []

    FIELDS = """
        subtopology_id             string                                0+
        source_topics              []string                              0+
        source_topic_regex         []string                              0+
        state_changelog_topics     []StreamsGroupTopologyValueTopicInfo  0+
        repartition_sink_topics    []string                              0+
        repartition_source_topics  []StreamsGroupTopologyValueTopicInfo  0+
        copartition_groups         []CopartitionGroup                    0+
    """


class StreamsGroupTopologyValue(Message):
    API_KEY = 23
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    epoch: int = 0
    subtopologies: list[Subtopology] = []

    FIELDS = """
        epoch          int32          0+
        subtopologies  []Subtopology  0+
    """
