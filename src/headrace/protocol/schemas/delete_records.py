"""DeleteRecords: API key 21.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class DeleteRecordsPartition(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    offset: Annotated[Int64, "0+"] = 0


class DeleteRecordsTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[DeleteRecordsPartition], "0+"] = []


class DeleteRecordsRequest(Message):
    API_KEY = 21
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    topics: Annotated[list[DeleteRecordsTopic], "0+"] = []
    timeout_ms: Annotated[Int32, "0+"] = 0


class DeleteRecordsPartitionResult(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    low_watermark: Annotated[Int64, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0


class DeleteRecordsTopicResult(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[DeleteRecordsPartitionResult], "0+"] = []


class DeleteRecordsResponse(Message):
    API_KEY = 21
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    topics: Annotated[list[DeleteRecordsTopicResult], "0+"] = []
