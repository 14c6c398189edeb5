"""ListPartitionReassignments: API key 46.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ListPartitionReassignmentsTopics(Structure):
    name: str = ""
    partition_indexes: list[int] = []

    FIELDS = """
        name               string   0+
        partition_indexes  []int32  0+
    """


class ListPartitionReassignmentsRequest(Message):
    API_KEY = 46
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None

    FIELDS = """
        timeout_ms  int32                               0+
        topics      []ListPartitionReassignmentsTopics  0+  nullable
    """


class OngoingPartitionReassignment(Structure):
    partition_index: int = 0
    replicas: list[int] = []
    adding_replicas: list[int] = []
    removing_replicas: list[int] = []

    FIELDS = """
        partition_index    int32    0+
        replicas           []int32  0+
        adding_replicas    []int32  0+
        removing_replicas  []int32  0+
    """


class OngoingTopicReassignment(Structure):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []

    FIELDS = """
        name        string                          0+
        partitions  []OngoingPartitionReassignment  0+
    """


class ListPartitionReassignmentsResponse(Message):
    API_KEY = 46
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []

    FIELDS = """
        throttle_time_ms  int32                       0+
        error_code        int16                       0+
        error_message     string                      0+  nullable
        topics            []OngoingTopicReassignment  0+
    """
