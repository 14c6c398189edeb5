"""WriteTxnMarkers: API key 27.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure


class WritableTxnMarkerTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partition_indexes: Annotated[list[Int32], "0+"] = []


class WritableTxnMarker(Structure):
    producer_id: Annotated[Int64, "0+"] = 0
    producer_epoch: Annotated[Int16, "0+"] = 0
    transaction_result: Annotated[bool, "0+"] = False
    topics: Annotated[list[WritableTxnMarkerTopic], "0+"] = []
    coordinator_epoch: Annotated[Int32, "0+"] = 0
    transaction_version: Annotated[Int8, "2+ ignorable"] = 0


class WriteTxnMarkersRequest(Message):
    API_KEY = 27
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 1

    markers: Annotated[list[WritableTxnMarker], "0+"] = []


class WritableTxnMarkerPartitionResult(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0


class WritableTxnMarkerTopicResult(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[WritableTxnMarkerPartitionResult], "0+"] = []


class WritableTxnMarkerResult(Structure):
    producer_id: Annotated[Int64, "0+"] = 0
    topics: Annotated[list[WritableTxnMarkerTopicResult], "0+"] = []


class WriteTxnMarkersResponse(Message):
    API_KEY = 27
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 1

    markers: Annotated[list[WritableTxnMarkerResult], "0+"] = []
