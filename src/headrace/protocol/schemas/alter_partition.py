"""AlterPartition: API key 56.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class BrokerState(Structure):
    broker_id: Annotated[Int32, "3+"] = 0
    broker_epoch: Annotated[Int64, "3+"] = -1


class AlterPartitionRequestPartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    new_isr: Annotated[list[Int32], "0-2"] = []
    new_isr_with_epochs: Annotated[list[BrokerState], "3+"] = []
    leader_recovery_state: Annotated[Int8, "1+"] = 0
    partition_epoch: Annotated[Int32, "0+"] = 0


class AlterPartitionRequestTopicData(Structure):
    topic_id: Annotated[Uuid, "2+ ignorable"] = ZERO
    partitions: Annotated[list[AlterPartitionRequestPartitionData], "0+"] = []


class AlterPartitionRequest(Message):
    API_KEY = 56
    VERSIONS = range(2, 4)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = -1
    topics: Annotated[list[AlterPartitionRequestTopicData], "0+"] = []


class AlterPartitionResponsePartitionData(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    isr: Annotated[list[Int32], "0+"] = []
    leader_recovery_state: Annotated[Int8, "1+ ignorable"] = 0
    partition_epoch: Annotated[Int32, "0+"] = 0


class AlterPartitionResponseTopicData(Structure):
    topic_id: Annotated[Uuid, "2+ ignorable"] = ZERO
    partitions: Annotated[list[AlterPartitionResponsePartitionData], "0+"] = []


class AlterPartitionResponse(Message):
    API_KEY = 56
    VERSIONS = range(2, 4)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    topics: Annotated[list[AlterPartitionResponseTopicData], "0+"] = []
