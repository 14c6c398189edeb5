"""CreateTopics: API key 19.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class CreatableReplicaAssignment(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    broker_ids: Annotated[list[Int32], "0+"] = []


class CreatableTopicConfig(Structure):
    name: Annotated[str, "0+"] = ""
    value: Annotated[str | None, "0+"] = ""


class CreatableTopic(Structure):
    name: Annotated[str, "0+"] = ""
    num_partitions: Annotated[Int32, "0+"] = 0
    replication_factor: Annotated[Int16, "0+"] = 0
    assignments: Annotated[list[CreatableReplicaAssignment], "0+"] = []
    configs: Annotated[list[CreatableTopicConfig], "0+"] = []


class CreateTopicsRequest(Message):
    API_KEY = 19
    VERSIONS = range(2, 8)
    FLEXIBLE_FROM = 5

    topics: Annotated[list[CreatableTopic], "0+"] = []
    timeout_ms: Annotated[Int32, "0+"] = 60000
    validate_only: Annotated[bool, "1+"] = False


class CreatableTopicConfigs(Structure):
    name: Annotated[str, "5+"] = ""
    value: Annotated[str | None, "5+"] = ""
    read_only: Annotated[bool, "5+"] = False
    config_source: Annotated[Int8, "5+ ignorable"] = -1
    is_sensitive: Annotated[bool, "5+"] = False


class CreatableTopicResult(Structure):
    name: Annotated[str, "0+"] = ""
    topic_id: Annotated[Uuid, "7+ ignorable"] = ZERO
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "1+ ignorable"] = ""
    topic_config_error_code: Annotated[Int16, "5+ tag=0 ignorable"] = 0
    num_partitions: Annotated[Int32, "5+ ignorable"] = -1
    replication_factor: Annotated[Int16, "5+ ignorable"] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, "5+ ignorable"] = []


class CreateTopicsResponse(Message):
    API_KEY = 19
    VERSIONS = range(2, 8)
    FLEXIBLE_FROM = 5

    throttle_time_ms: Annotated[Int32, "2+ ignorable"] = 0
    topics: Annotated[list[CreatableTopicResult], "0+"] = []
