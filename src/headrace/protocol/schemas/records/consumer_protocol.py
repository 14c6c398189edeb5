"""The messages that consumers put into the metadata and assignment bytes of a classic group.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int32, Message, Structure


class ConsumerProtocolSubscriptionTopicPartition(Structure):
    topic: Annotated[str, "1+"] = ""
    partitions: Annotated[list[Int32], "1+"] = []


class ConsumerProtocolSubscription(Message):
    VERSIONS = range(4)

    topics: Annotated[list[str], "0+"] = []
    user_data: Annotated[bytes | None, "0+"] = None
    owned_partitions: Annotated[
        list[ConsumerProtocolSubscriptionTopicPartition], "1+ ignorable"
    ] = []
    generation_id: Annotated[Int32, "2+ ignorable"] = -1
    rack_id: Annotated[str | None, "3+ ignorable"] = None


class ConsumerProtocolAssignmentTopicPartition(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class ConsumerProtocolAssignment(Message):
    VERSIONS = range(4)

    assigned_partitions: Annotated[list[ConsumerProtocolAssignmentTopicPartition], "0+"] = []
    user_data: Annotated[bytes | None, "0+"] = None
