"""UnregisterBroker: API key 64.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class UnregisterBrokerRequest(Message):
    API_KEY = 64
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: int = 0

    FIELDS = """
        broker_id  int32  0+
    """


class UnregisterBrokerResponse(Message):
    API_KEY = 64
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS = """
        throttle_time_ms  int32   0+
        error_code        int16   0+
        error_message     string  0+  nullable
    """
