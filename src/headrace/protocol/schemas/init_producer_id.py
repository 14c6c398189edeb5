"""InitProducerId: API key 22.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class InitProducerIdRequest(Message):
    API_KEY = 22
    VERSIONS = range(6)
    FLEXIBLE_FROM = 2

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1

    FIELDS = """
        transactional_id        string  0+  nullable
        transaction_timeout_ms  int32   0+
        producer_id             int64   3+
        producer_epoch          int16   3+
    """


class InitProducerIdResponse(Message):
    API_KEY = 22
    VERSIONS = range(6)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0

    FIELDS = """
        throttle_time_ms  int32  0+  ignorable
        error_code        int16  0+
        producer_id       int64  0+
        producer_epoch    int16  0+
    """
