"""DescribeProducers: API key 61.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class TopicRequest(Structure):
    name: Annotated[str, "0+"] = ""
    partition_indexes: Annotated[list[Int32], "0+"] = []


class DescribeProducersRequest(Message):
    API_KEY = 61
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    topics: Annotated[list[TopicRequest], "0+"] = []


class ProducerState(Structure):
    producer_id: Annotated[Int64, "0+"] = 0
    producer_epoch: Annotated[Int32, "0+"] = 0
    last_sequence: Annotated[Int32, "0+"] = -1
    last_timestamp: Annotated[Int64, "0+"] = -1
    coordinator_epoch: Annotated[Int32, "0+"] = 0
    current_txn_start_offset: Annotated[Int64, "0+"] = -1


class PartitionResponse(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    active_producers: Annotated[list[ProducerState], "0+"] = []


class TopicResponse(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[PartitionResponse], "0+"] = []


class DescribeProducersResponse(Message):
    API_KEY = 61
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    topics: Annotated[list[TopicResponse], "0+"] = []
