"""DescribeLogDirs: API key 35.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DescribableLogDirTopic(Structure):
    topic: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic       string   0+
        partitions  []int32  0+
    """


class DescribeLogDirsRequest(Message):
    API_KEY = 35
    VERSIONS = range(1, 6)
    FLEXIBLE_FROM = 2

    topics: list[DescribableLogDirTopic] | None = []

    FIELDS = """
        topics  []DescribableLogDirTopic  0+  nullable
    """


class DescribeLogDirsPartition(Structure):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False

    FIELDS = """
        partition_index  int32  0+
        partition_size   int64  0+
        offset_lag       int64  0+
        is_future_key    bool   0+
    """


class DescribeLogDirsTopic(Structure):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []

    FIELDS = """
        name        string                      0+
        partitions  []DescribeLogDirsPartition  0+
    """


class DescribeLogDirsResult(Structure):
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False

    FIELDS = """
        error_code    int16                   0+
        log_dir       string                  0+
        topics        []DescribeLogDirsTopic  0+
        total_bytes   int64                   4+  ignorable
        usable_bytes  int64                   4+  ignorable
        is_cordoned   bool                    5+  ignorable
    """


class DescribeLogDirsResponse(Message):
    API_KEY = 35
    VERSIONS = range(1, 6)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = []

    FIELDS = """
        throttle_time_ms  int32                    0+
        error_code        int16                    3+  ignorable
        results           []DescribeLogDirsResult  0+
    """
