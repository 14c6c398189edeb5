"""StreamsGroupDescribe: API key 89.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure


class StreamsGroupDescribeRequest(Message):
    API_KEY = 89
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    group_ids: list[str] = []
    include_authorized_operations: bool = False

    FIELDS = """
        group_ids                      []string  0+
        include_authorized_operations  bool      0+
    """


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


class Subtopology(Structure):
    subtopology_id: str = ""
    source_topics: list[str] = []
    repartition_sink_topics: list[str] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []

    FIELDS = """
        subtopology_id             string       0+
        source_topics              []string     0+
        repartition_sink_topics    []string     0+
        state_changelog_topics     []TopicInfo  0+
        repartition_source_topics  []TopicInfo  0+
    """


class Topology(FrozenStructure, frozen=True):
    epoch: int = 0
    subtopologies: list[Subtopology] | None = None

    FIELDS = """
        epoch          int32          0+
        subtopologies  []Subtopology  0+  nullable
    """


class Endpoint(FrozenStructure, frozen=True):
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


class TaskIds(Structure):
    subtopology_id: str = ""
    partitions: list[int] = []

    FIELDS = """
        subtopology_id  string   0+
        partitions      []int32  0+
    """


class Assignment(FrozenStructure, frozen=True):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []

    FIELDS = """
        active_tasks   []TaskIds  0+
        standby_tasks  []TaskIds  0+
        warmup_tasks   []TaskIds  0+
    """


class Member(Structure):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    is_classic: bool = False

    FIELDS = """
        member_id          string        0+
        member_epoch       int32         0+
        instance_id        string        0+  nullable
        rack_id            string        0+  nullable
        client_id          string        0+
        client_host        string        0+
        topology_epoch     int32         0+
        process_id         string        0+
        user_endpoint      Endpoint      0+  nullable
        client_tags        []KeyValue    0+
        task_offsets       []TaskOffset  0+
        task_end_offsets   []TaskOffset  0+
        assignment         Assignment    0+
        target_assignment  Assignment    0+
        is_classic         bool          0+
    """


class DescribedGroup(Structure):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = []
    authorized_operations: int = -2147483648

    FIELDS = """
        error_code             int16     0+
        error_message          string    0+  nullable
        group_id               string    0+
        group_state            string    0+
        group_epoch            int32     0+
        assignment_epoch       int32     0+
        topology               Topology  0+  nullable
        members                []Member  0+
        authorized_operations  int32     0+
    """


class StreamsGroupDescribeResponse(Message):
    API_KEY = 89
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []

    FIELDS = """
        throttle_time_ms  int32             0+
        groups            []DescribedGroup  0+
    """
