"""ShareGroupHeartbeat: API key 76.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ShareGroupHeartbeatRequest(Message):
    API_KEY = 76
    VERSIONS = range(1, 2)
    FLEXIBLE_FROM = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None

    FIELDS = """
        group_id                string    0+
        member_id               string    0+
        member_epoch            int32     0+
        rack_id                 string    0+  nullable
        subscribed_topic_names  []string  0+  nullable
    """


class TopicPartitions(Structure):
    topic_id: Uuid = ZERO
    partitions: list[int] = []

    FIELDS = """
        topic_id    uuid     0+
        partitions  []int32  0+
    """


class Assignment(FrozenStructure, frozen=True):
    topic_partitions: list[TopicPartitions] = []

    FIELDS = """
        topic_partitions  []TopicPartitions  0+
    """


class ShareGroupHeartbeatResponse(Message):
    API_KEY = 76
    VERSIONS = range(1, 2)
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
