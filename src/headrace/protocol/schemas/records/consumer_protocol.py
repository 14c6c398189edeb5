"""What consumers put into the metadata and assignment bytes of a classic group.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ConsumerProtocolSubscriptionTopicPartition(Structure):
    topic: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic       string   1+
        partitions  []int32  1+
    """


class ConsumerProtocolSubscription(Message):
    VERSIONS = range(4)

    topics: list[str] = []
    user_data: bytes | None = None
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = []
    generation_id: int = -1
    rack_id: str | None = None

    FIELDS = """
        topics            []string                                      0+
        user_data         bytes                                         0+  nullable
        owned_partitions  []ConsumerProtocolSubscriptionTopicPartition  1+  ignorable
        generation_id     int32                                         2+  ignorable
        rack_id           string                                        3+  nullable ignorable
    """


class ConsumerProtocolAssignmentTopicPartition(Structure):
    topic: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic       string   0+
        partitions  []int32  0+
    """


class ConsumerProtocolAssignment(Message):
    VERSIONS = range(4)

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = []
    user_data: bytes | None = None

    FIELDS = """
        assigned_partitions  []ConsumerProtocolAssignmentTopicPartition  0+
        user_data            bytes                                       0+  nullable
    """
