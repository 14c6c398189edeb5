"""ConsumerGroupDescribe: API key 69.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ConsumerGroupDescribeRequest(Message):
    API_KEY = 69
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_ids: list[str] = []
    include_authorized_operations: bool = False

    FIELDS = """
        group_ids                      []string  0+
        include_authorized_operations  bool      0+
    """


class TopicPartitions(Structure):
    topic_id: Uuid = ZERO
    topic_name: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        topic_name  string   0+
        partitions  []int32  0+
    """


class Assignment(FrozenStructure, frozen=True):
    topic_partitions: list[TopicPartitions] = []

    FIELDS = """
        topic_partitions  []TopicPartitions  0+
    """


class Member(Structure):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: int = -1

    FIELDS = """
        member_id               string      0+
        instance_id             string      0+  nullable
        rack_id                 string      0+  nullable
        member_epoch            int32       0+
        client_id               string      0+
        client_host             string      0+
        subscribed_topic_names  []string    0+
        subscribed_topic_regex  string      0+  nullable
        assignment              Assignment  0+
        target_assignment       Assignment  0+
        member_type             int8        1+  ignorable
    """


class DescribedGroup(Structure):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: int = -2147483648

    FIELDS = """
        error_code             int16     0+
        error_message          string    0+  nullable
        group_id               string    0+
        group_state            string    0+
        group_epoch            int32     0+
        assignment_epoch       int32     0+
        assignor_name          string    0+
        members                []Member  0+
        authorized_operations  int32     0+
    """


class ConsumerGroupDescribeResponse(Message):
    API_KEY = 69
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []

    FIELDS = """
        throttle_time_ms  int32             0+
        groups            []DescribedGroup  0+
    """
