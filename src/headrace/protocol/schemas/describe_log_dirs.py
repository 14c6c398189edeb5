"""DescribeLogDirs: API key 35.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class DescribableLogDirTopic(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class DescribeLogDirsRequest(Message):
    API_KEY = 35
    VERSIONS = range(1, 6)
    FLEXIBLE_FROM = 2

    topics: Annotated[list[DescribableLogDirTopic] | None, "0+"] = []


class DescribeLogDirsPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    partition_size: Annotated[Int64, "0+"] = 0
    offset_lag: Annotated[Int64, "0+"] = 0
    is_future_key: Annotated[bool, "0+"] = False


class DescribeLogDirsTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[DescribeLogDirsPartition], "0+"] = []


class DescribeLogDirsResult(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    log_dir: Annotated[str, "0+"] = ""
    topics: Annotated[list[DescribeLogDirsTopic], "0+"] = []
    total_bytes: Annotated[Int64, "4+ ignorable"] = -1
    usable_bytes: Annotated[Int64, "4+ ignorable"] = -1
    is_cordoned: Annotated[bool, "5+ ignorable"] = False


class DescribeLogDirsResponse(Message):
    API_KEY = 35
    VERSIONS = range(1, 6)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "3+ ignorable"] = 0
    results: Annotated[list[DescribeLogDirsResult], "0+"] = []
