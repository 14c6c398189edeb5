"""ConsumerGroupHeartbeat: API key 68.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ConsumerGroupHeartbeatRequestTopicPartitions(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY = 68
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None

    FIELDS = """
        group_id                string                                          0+
        member_id               string                                          0+
        member_epoch            int32                                           0+
        instance_id             string                                          0+  nullable
        rack_id                 string                                          0+  nullable
        rebalance_timeout_ms    int32                                           0+
        subscribed_topic_names  []string                                        0+  nullable
        subscribed_topic_regex  string                                          1+  nullable
        server_assignor         string                                          0+  nullable
        topic_partitions        []ConsumerGroupHeartbeatRequestTopicPartitions  0+  nullable
    """


class ConsumerGroupHeartbeatResponseTopicPartitions(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class Assignment(FrozenStructure, frozen=True):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = []

    FIELDS = """
        topic_partitions  []ConsumerGroupHeartbeatResponseTopicPartitions  0+
    """


class ConsumerGroupHeartbeatResponse(Message):
    API_KEY = 68
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None

    FIELDS = """
        throttle_time_ms       int32       0+
        error_code             int16       0+
        error_message          string      0+  nullable
        member_id              string      0+  nullable
        member_epoch           int32       0+
        heartbeat_interval_ms  int32       0+
        assignment             Assignment  0+  nullable
    """
