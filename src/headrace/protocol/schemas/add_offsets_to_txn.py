"""AddOffsetsToTxn: API key 25.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class AddOffsetsToTxnRequest(Message):
    API_KEY = 25
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""

    FIELDS = """
        transactional_id  string  0+
        producer_id       int64   0+
        producer_epoch    int16   0+
        group_id          string  0+
    """


class AddOffsetsToTxnResponse(Message):
    API_KEY = 25
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = 0
    error_code: int = 0

    FIELDS = """
        throttle_time_ms  int32  0+
        error_code        int16  0+
    """
