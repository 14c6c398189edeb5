"""EndTxn: API key 26.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class EndTxnRequest(Message):
    API_KEY = 26
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False

    FIELDS = """
        transactional_id  string  0+
        producer_id       int64   0+
        producer_epoch    int16   0+
        committed         bool    0+
    """


class EndTxnResponse(Message):
    API_KEY = 26
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1

    FIELDS = """
        throttle_time_ms  int32  0+
        error_code        int16  0+
        producer_id       int64  5+  ignorable
        producer_epoch    int16  5+  ignorable
    """
