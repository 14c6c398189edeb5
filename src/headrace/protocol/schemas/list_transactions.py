"""ListTransactions: API key 66.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ListTransactionsRequest(Message):
    API_KEY = 66
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    state_filters: list[str] = []
    producer_id_filters: list[int] = []
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

    FIELDS = """
        state_filters             []string  0+
        producer_id_filters       []int64   0+
        duration_filter           int64     1+
        transactional_id_pattern  string    2+  nullable
    """


class TransactionState(Structure):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""

    FIELDS = """
        transactional_id   string  0+
        producer_id        int64   0+
        transaction_state  string  0+
    """


class ListTransactionsResponse(Message):
    API_KEY = 66
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []

    FIELDS = """
        throttle_time_ms       int32               0+
        error_code             int16               0+
        unknown_state_filters  []string            0+
        transaction_states     []TransactionState  0+
    """
