"""OffsetFetch: API key 9.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class OffsetFetchRequestTopic(Structure):
    name: str = ""
    partition_indexes: list[int] = []

    FIELDS = """
        name               string   0-7
        partition_indexes  []int32  0-7
    """


class OffsetFetchRequestTopics(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    partition_indexes: list[int] = []

    FIELDS = """
        name               string   8-9  ignorable
        topic_id           uuid     10+  ignorable
        partition_indexes  []int32  8+
    """


class OffsetFetchRequestGroup(Structure):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = []

    FIELDS = """
        group_id      string                      8+
        member_id     string                      9+  nullable ignorable
        member_epoch  int32                       9+  ignorable
        topics        []OffsetFetchRequestTopics  8+  nullable
    """


class OffsetFetchRequest(Message):
    API_KEY = 9
    VERSIONS = range(1, 11)
    FLEXIBLE_FROM = 6

    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = []
    groups: list[OffsetFetchRequestGroup] = []
    require_stable: bool = False

    FIELDS = """
        group_id        string                     0-7
        topics          []OffsetFetchRequestTopic  0-7  nullable=2-7
        groups          []OffsetFetchRequestGroup  8+
        require_stable  bool                       7+
    """


class OffsetFetchResponsePartition(Structure):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0

    FIELDS = """
        partition_index         int32   0-7
        committed_offset        int64   0-7
        committed_leader_epoch  int32   5-7  ignorable
        metadata                string  0-7  nullable
        error_code              int16   0-7
    """


class OffsetFetchResponseTopic(Structure):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []

    FIELDS = """
        name        string                          0-7
        partitions  []OffsetFetchResponsePartition  0-7
    """


class OffsetFetchResponsePartitions(Structure):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0

    FIELDS = """
        partition_index         int32   8+
        committed_offset        int64   8+
        committed_leader_epoch  int32   8+  ignorable
        metadata                string  8+  nullable
        error_code              int16   8+
    """


class OffsetFetchResponseTopics(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    partitions: list[OffsetFetchResponsePartitions] = []

    FIELDS = """
        name        string                           8-9  ignorable
        topic_id    uuid                             10+  ignorable
        partitions  []OffsetFetchResponsePartitions  8+
    """


class OffsetFetchResponseGroup(Structure):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: int = 0

    FIELDS = """
        group_id    string                       8+
        topics      []OffsetFetchResponseTopics  8+
        error_code  int16                        8+
    """


class OffsetFetchResponse(Message):
    API_KEY = 9
    VERSIONS = range(1, 11)
    FLEXIBLE_FROM = 6

    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = []
    error_code: int = 0
    groups: list[OffsetFetchResponseGroup] = []

    FIELDS = """
        throttle_time_ms  int32                       3+   ignorable
        topics            []OffsetFetchResponseTopic  0-7
        error_code        int16                       2-7  ignorable
        groups            []OffsetFetchResponseGroup  8+
    """
