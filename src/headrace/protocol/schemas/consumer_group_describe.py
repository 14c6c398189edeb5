"""ConsumerGroupDescribe: API key 69.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import FrozenStructure, Int8, Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ConsumerGroupDescribeRequest(Message):
    API_KEY = 69
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_ids: Annotated[list[str], "0+"] = []
    include_authorized_operations: Annotated[bool, "0+"] = False


class TopicPartitions(Structure):
    topic_id: Annotated[Uuid, "0+"] = ZERO
    topic_name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class Assignment(FrozenStructure, frozen=True):
    topic_partitions: Annotated[list[TopicPartitions], "0+"] = []


class Member(Structure):
    member_id: Annotated[str, "0+"] = ""
    instance_id: Annotated[str | None, "0+"] = None
    rack_id: Annotated[str | None, "0+"] = None
    member_epoch: Annotated[Int32, "0+"] = 0
    client_id: Annotated[str, "0+"] = ""
    client_host: Annotated[str, "0+"] = ""
    subscribed_topic_names: Annotated[list[str], "0+"] = []
    subscribed_topic_regex: Annotated[str | None, "0+"] = None
    assignment: Annotated[Assignment, "0+"] = Assignment()
    target_assignment: Annotated[Assignment, "0+"] = Assignment()
    member_type: Annotated[Int8, "1+ ignorable"] = -1


class DescribedGroup(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    group_id: Annotated[str, "0+"] = ""
    group_state: Annotated[str, "0+"] = ""
    group_epoch: Annotated[Int32, "0+"] = 0
    assignment_epoch: Annotated[Int32, "0+"] = 0
    assignor_name: Annotated[str, "0+"] = ""
    members: Annotated[list[Member], "0+"] = []
    authorized_operations: Annotated[Int32, "0+"] = -2147483648


class ConsumerGroupDescribeResponse(Message):
    API_KEY = 69
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    groups: Annotated[list[DescribedGroup], "0+"] = []
