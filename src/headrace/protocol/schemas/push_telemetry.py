"""PushTelemetry: API key 72.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message
from headrace.protocol.uuids import ZERO, Uuid


class PushTelemetryRequest(Message):
    API_KEY = 72
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    client_instance_id: Uuid = ZERO
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""

    FIELDS = """
        client_instance_id  uuid   0+
        subscription_id     int32  0+
        terminating         bool   0+
        compression_type    int8   0+
        metrics             bytes  0+
    """


class PushTelemetryResponse(Message):
    API_KEY = 72
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0

    FIELDS = """
        throttle_time_ms  int32  0+
        error_code        int16  0+
    """
