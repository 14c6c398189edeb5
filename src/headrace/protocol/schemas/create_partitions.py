"""CreatePartitions: API key 37.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class CreatePartitionsAssignment(Structure):
    broker_ids: list[int] = []

    FIELDS = """
        broker_ids  []int32  0+
    """


class CreatePartitionsTopic(Structure):
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = []

    FIELDS = """
        name         string                        0+
        count        int32                         0+
        assignments  []CreatePartitionsAssignment  0+  nullable
    """


class CreatePartitionsRequest(Message):
    API_KEY = 37
    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: int = 0
    validate_only: bool = False

    FIELDS = """
        topics         []CreatePartitionsTopic  0+
        timeout_ms     int32                    0+
        validate_only  bool                     0+
    """


class CreatePartitionsTopicResult(Structure):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None

    FIELDS = """
        name           string  0+
        error_code     int16   0+
        error_message  string  0+  nullable
    """


class CreatePartitionsResponse(Message):
    API_KEY = 37
    VERSIONS = range(4)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = []

    FIELDS = """
        throttle_time_ms  int32                          0+
        results           []CreatePartitionsTopicResult  0+
    """
