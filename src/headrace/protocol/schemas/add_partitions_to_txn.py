"""AddPartitionsToTxn: API key 24.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class AddPartitionsToTxnTopic(Structure):
    name: str = ""
    partitions: list[int] = []

    FIELDS = """
        name        string   0+
        partitions  []int32  0+
    """


class AddPartitionsToTxnTransaction(Structure):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []

    FIELDS = """
        transactional_id  string                     4+
        producer_id       int64                      4+
        producer_epoch    int16                      4+
        verify_only       bool                       4+
        topics            []AddPartitionsToTxnTopic  4+
    """


class AddPartitionsToTxnRequest(Message):
    API_KEY = 24
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    transactions: list[AddPartitionsToTxnTransaction] = []
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []

    FIELDS = """
        transactions                   []AddPartitionsToTxnTransaction  4+
        v3_and_below_transactional_id  string                           0-3
        v3_and_below_producer_id       int64                            0-3
        v3_and_below_producer_epoch    int16                            0-3
        v3_and_below_topics            []AddPartitionsToTxnTopic        0-3
    """


class AddPartitionsToTxnPartitionResult(Structure):
    partition_index: int = 0
    partition_error_code: int = 0

    FIELDS = """
        partition_index       int32  0+
        partition_error_code  int16  0+
    """


class AddPartitionsToTxnTopicResult(Structure):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []

    FIELDS = """
        name                  string                               0+
        results_by_partition  []AddPartitionsToTxnPartitionResult  0+
    """


class AddPartitionsToTxnResult(Structure):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []

    FIELDS = """
        transactional_id  string                           4+
        topic_results     []AddPartitionsToTxnTopicResult  4+
    """


class AddPartitionsToTxnResponse(Message):
    API_KEY = 24
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = []
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []

    FIELDS = """
        throttle_time_ms               int32                            0+
        error_code                     int16                            4+   ignorable
        results_by_transaction         []AddPartitionsToTxnResult       4+
        results_by_topic_v3_and_below  []AddPartitionsToTxnTopicResult  0-3
    """
