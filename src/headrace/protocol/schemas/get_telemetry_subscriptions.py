"""GetTelemetrySubscriptions: API key 71.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message
from headrace.protocol.uuids import ZERO, Uuid


class GetTelemetrySubscriptionsRequest(Message):
    API_KEY = 71
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    client_instance_id: Uuid = ZERO

    FIELDS = """
        client_instance_id  uuid  0+
    """


class GetTelemetrySubscriptionsResponse(Message):
    API_KEY = 71
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: Uuid = ZERO
    subscription_id: int = 0
    accepted_compression_types: list[int] = []
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = []

    FIELDS = """
        throttle_time_ms            int32     0+
        error_code                  int16     0+
        client_instance_id          uuid      0+
        subscription_id             int32     0+
        accepted_compression_types  []int8    0+
        push_interval_ms            int32     0+
        telemetry_max_bytes         int32     0+
        delta_temporality           bool      0+
        requested_metrics           []string  0+
    """
