"""GetTelemetrySubscriptions: API key 71.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message
from headrace.protocol.uuids import ZERO, Uuid


class GetTelemetrySubscriptionsRequest(Message):
    API_KEY = 71
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    client_instance_id: Annotated[Uuid, "0+"] = ZERO


class GetTelemetrySubscriptionsResponse(Message):
    API_KEY = 71
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    client_instance_id: Annotated[Uuid, "0+"] = ZERO
    subscription_id: Annotated[Int32, "0+"] = 0
    accepted_compression_types: Annotated[list[Int8], "0+"] = []
    push_interval_ms: Annotated[Int32, "0+"] = 0
    telemetry_max_bytes: Annotated[Int32, "0+"] = 0
    delta_temporality: Annotated[bool, "0+"] = False
    requested_metrics: Annotated[list[str], "0+"] = []
