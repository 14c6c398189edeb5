"""WriteTxnMarkers: API key 27.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class WritableTxnMarkerTopic(Structure):
    name: str = ""
    partition_indexes: list[int] = []

    FIELDS = """
        name               string   0+
        partition_indexes  []int32  0+
    """


class WritableTxnMarker(Structure):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int = 0
    transaction_version: int = 0

    FIELDS = """
        producer_id          int64                     0+
        producer_epoch       int16                     0+
        transaction_result   bool                      0+
        topics               []WritableTxnMarkerTopic  0+
        coordinator_epoch    int32                     0+
        transaction_version  int8                      2+  ignorable
    """


class WriteTxnMarkersRequest(Message):
    API_KEY = 27
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 1

    markers: list[WritableTxnMarker] = []

    FIELDS = """
        markers  []WritableTxnMarker  0+
    """


class WritableTxnMarkerPartitionResult(Structure):
    partition_index: int = 0
    error_code: int = 0

    FIELDS = """
        partition_index  int32  0+
        error_code       int16  0+
    """


class WritableTxnMarkerTopicResult(Structure):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []

    FIELDS = """
        name        string                              0+
        partitions  []WritableTxnMarkerPartitionResult  0+
    """


class WritableTxnMarkerResult(Structure):
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = []

    FIELDS = """
        producer_id  int64                           0+
        topics       []WritableTxnMarkerTopicResult  0+
    """


class WriteTxnMarkersResponse(Message):
    API_KEY = 27
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 1

    markers: list[WritableTxnMarkerResult] = []

    FIELDS = """
        markers  []WritableTxnMarkerResult  0+
    """
