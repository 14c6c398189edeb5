"""StreamsGroupHeartbeat: API key 88.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure


class KeyValue(Structure):
    key: str = ""
    value: str = ""

    FIELDS = """
        key    string  0+
        value  string  0+
    """


class TopicInfo(Structure):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = []

    FIELDS = """
        name                string      0+
        partitions          int32       0+
        replication_factor  int16       0+
        topic_configs       []KeyValue  0+
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
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []

    FIELDS = """
        subtopology_id             string              0+
        source_topics              []string            0+
        source_topic_regex         []string            0+
        state_changelog_topics     []TopicInfo         0+
        repartition_sink_topics    []string            0+
        repartition_source_topics  []TopicInfo         0+
        copartition_groups         []CopartitionGroup  0+
    """


class Topology(FrozenStructure, frozen=True):
    epoch: int = 0
    subtopologies: list[Subtopology] = []

    FIELDS = """
        epoch          int32          0+
        subtopologies  []Subtopology  0+
    """


class StreamsGroupHeartbeatRequestTaskIds(Structure):
    subtopology_id: str = ""
    partitions: list[int] = []

    FIELDS = """
        subtopology_id  string   0+
        partitions      []int32  0+
    """


class StreamsGroupHeartbeatRequestEndpoint(FrozenStructure, frozen=True):
    host: str = ""
    port: int = 0

    FIELDS = """
        host  string  0+
        port  uint16  0+
    """


class TaskOffset(Structure):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0

    FIELDS = """
        subtopology_id  string  0+
        partition       int32   0+
        offset          int64   0+
    """


class StreamsGroupHeartbeatRequest(Message):
    API_KEY = 88
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    process_id: str | None = None
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False

    FIELDS = """
        group_id                    string                                 0+
        member_id                   string                                 0+
        member_epoch                int32                                  0+
        endpoint_information_epoch  int32                                  0+
        instance_id                 string                                 0+  nullable
        rack_id                     string                                 0+  nullable
        rebalance_timeout_ms        int32                                  0+
        topology                    Topology                               0+  nullable
        active_tasks                []StreamsGroupHeartbeatRequestTaskIds  0+  nullable
        standby_tasks               []StreamsGroupHeartbeatRequestTaskIds  0+  nullable
        warmup_tasks                []StreamsGroupHeartbeatRequestTaskIds  0+  nullable
        process_id                  string                                 0+  nullable
        user_endpoint               StreamsGroupHeartbeatRequestEndpoint   0+  nullable
        client_tags                 []KeyValue                             0+  nullable
        task_offsets                []TaskOffset                           0+  nullable
        task_end_offsets            []TaskOffset                           0+  nullable
        shutdown_application        bool                                   0+
    """


class Status(Structure):
    status_code: int = 0
    status_detail: str = ""

    FIELDS = """
        status_code    int8    0+
        status_detail  string  0+
    """


class StreamsGroupHeartbeatResponseTaskIds(Structure):
    subtopology_id: str = ""
    partitions: list[int] = []

    FIELDS = """
        subtopology_id  string   0+
        partitions      []int32  0+
    """


class StreamsGroupHeartbeatResponseEndpoint(FrozenStructure, frozen=True):
    host: str = ""
    port: int = 0

    FIELDS = """
        host  string  0+
        port  uint16  0+
    """


class TopicPartition(Structure):
    topic: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic       string   0+
        partitions  []int32  0+
    """


class EndpointToPartitions(Structure):
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = StreamsGroupHeartbeatResponseEndpoint()
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []

    FIELDS = """
        user_endpoint       StreamsGroupHeartbeatResponseEndpoint  0+
        active_partitions   []TopicPartition                       0+
        standby_partitions  []TopicPartition                       0+
    """


class StreamsGroupHeartbeatResponse(Message):
    API_KEY = 88
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = []
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None

    FIELDS = """
        throttle_time_ms             int32                                   0+
        error_code                   int16                                   0+
        error_message                string                                  0+  nullable
        member_id                    string                                  0+
        member_epoch                 int32                                   0+
        heartbeat_interval_ms        int32                                   0+
        acceptable_recovery_lag      int32                                   0+
        task_offset_interval_ms      int32                                   0+
        status                       []Status                                0+  nullable
        active_tasks                 []StreamsGroupHeartbeatResponseTaskIds  0+  nullable
        standby_tasks                []StreamsGroupHeartbeatResponseTaskIds  0+  nullable
        warmup_tasks                 []StreamsGroupHeartbeatResponseTaskIds  0+  nullable
        endpoint_information_epoch   int32                                   0+
        partitions_by_user_endpoint  []EndpointToPartitions                  0+  nullable
    """
