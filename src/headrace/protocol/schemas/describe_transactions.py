"""DescribeTransactions: API key 65.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DescribeTransactionsRequest(Message):
    API_KEY = 65
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    transactional_ids: list[str] = []

    FIELDS = """
        transactional_ids  []string  0+
    """


class TopicData(Structure):
    topic: str = ""
    partitions: list[int] = []

    FIELDS = """
        topic       string   0+
        partitions  []int32  0+
    """


class TransactionState(Structure):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = []

    FIELDS = """
        error_code                 int16        0+
        transactional_id           string       0+
        transaction_state          string       0+
        transaction_timeout_ms     int32        0+
        transaction_start_time_ms  int64        0+
        producer_id                int64        0+
        producer_epoch             int16        0+
        topics                     []TopicData  0+
    """


class DescribeTransactionsResponse(Message):
    API_KEY = 65
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = []

    FIELDS = """
        throttle_time_ms    int32               0+
        transaction_states  []TransactionState  0+
    """
