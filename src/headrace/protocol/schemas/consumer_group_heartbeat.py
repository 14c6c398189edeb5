"""ConsumerGroupHeartbeat: API key 68.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import FrozenStructure, Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ConsumerGroupHeartbeatRequestTopicPartitions(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY = 68
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: Annotated[str, "0+"] = ""
    member_id: Annotated[str, "0+"] = ""
    member_epoch: Annotated[Int32, "0+"] = 0
    instance_id: Annotated[str | None, "0+"] = None
    rack_id: Annotated[str | None, "0+"] = None
    rebalance_timeout_ms: Annotated[Int32, "0+"] = -1
    subscribed_topic_names: Annotated[list[str] | None, "0+"] = None
    subscribed_topic_regex: Annotated[str | None, "1+"] = None
    server_assignor: Annotated[str | None, "0+"] = None
    topic_partitions: Annotated[list[ConsumerGroupHeartbeatRequestTopicPartitions] | None, "0+"] = (
        None
    )


class ConsumerGroupHeartbeatResponseTopicPartitions(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    partitions: Annotated[list[Int32], "0+"] = []


class Assignment(FrozenStructure, frozen=True):
    topic_partitions: Annotated[list[ConsumerGroupHeartbeatResponseTopicPartitions], "0+"] = []


class ConsumerGroupHeartbeatResponse(Message):
    API_KEY = 68
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    member_id: Annotated[str | None, "0+"] = None
    member_epoch: Annotated[Int32, "0+"] = 0
    heartbeat_interval_ms: Annotated[Int32, "0+"] = 0
    assignment: Annotated[Assignment | None, "0+"] = None
