"""Envelope: API key 58.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Message


class EnvelopeRequest(Message):
    API_KEY = 58
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    request_data: Annotated[bytes, "0+"] = b""
    request_principal: Annotated[bytes | None, "0+"] = b""
    client_host_address: Annotated[bytes, "0+"] = b""


class EnvelopeResponse(Message):
    API_KEY = 58
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    response_data: Annotated[bytes | None, "0+"] = None
    error_code: Annotated[Int16, "0+"] = 0
