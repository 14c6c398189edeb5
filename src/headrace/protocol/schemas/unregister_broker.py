"""UnregisterBroker: API key 64.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message


class UnregisterBrokerRequest(Message):
    API_KEY = 64
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0


class UnregisterBrokerResponse(Message):
    API_KEY = 64
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
