"""PushTelemetry: API key 72.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message
from headrace.protocol.uuids import ZERO, Uuid


class PushTelemetryRequest(Message):
    API_KEY = 72
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    client_instance_id: Annotated[Uuid, "0+"] = ZERO
    subscription_id: Annotated[Int32, "0+"] = 0
    terminating: Annotated[bool, "0+"] = False
    compression_type: Annotated[Int8, "0+"] = 0
    metrics: Annotated[bytes, "0+"] = b""


class PushTelemetryResponse(Message):
    API_KEY = 72
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
