"""RenewDelegationToken: API key 39.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message


class RenewDelegationTokenRequest(Message):
    API_KEY = 39
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 2

    hmac: Annotated[bytes, "0+"] = b""
    renew_period_ms: Annotated[Int64, "0+"] = 0


class RenewDelegationTokenResponse(Message):
    API_KEY = 39
    VERSIONS = range(1, 3)
    FLEXIBLE_FROM = 2

    error_code: Annotated[Int16, "0+"] = 0
    expiry_timestamp_ms: Annotated[Int64, "0+"] = 0
    throttle_time_ms: Annotated[Int32, "0+"] = 0
